/**
 * How long <attention-heads> takes to draw all heads: node tests/bench/view-heads.mjs [layers heads length] (default 12 12 256)
 *
 * In fresh pages of headless Chromium at two pixels per CSS pixel, from setting the data: until the frame that shows all thumbnails, many of
 * which are as coarse as CSS pixels at first, and until all are as fine as the screen; and the processor time of the page's main thread until
 * then, which other programs do not lengthen. Once after the page has shown a small text, so that what is timed is not the compiler, and once
 * as the first thing that a page shows.
 * Target: all of 12 × 12 heads of 256 tokens shown within 200 ms, after a small text.
 */
import { verdict, withPages } from "./page-of-view.mjs";

const [layers = 12, heads = 12, length = 256] = process.argv.slice(2).map(Number);
const READINGS = 7;
const MOST = 200;
/** Milliseconds until the collector is done with what making the data left. */
const PAUSE = 500;

/** Runs in the page: the data of causal heads. @param {{ layers: number, heads: number, length: number }} sizes */
function prepare({ layers, heads, length }) {
  const weights = Array.from({ length: layers }, (_, layer) => {
    const data = new Float32Array(heads * length * length).fill(0);
    for (let row = 0; row < heads * length; row++) {
      const query = row % length;
      for (let key = 0; key <= query; key++)
        data[row * length + key] = ((row * 31 + key * 17 + layer) % 64) / (32 * (query + 1));
    }
    return { data, dims: [1, heads, length, length] };
  });
  Object.assign(globalThis, { attention: { weights, tokens: Array.from({ length }, (_, token) => ` token${token}`) } });
}

/** Runs in the page: milliseconds until all thumbnails are shown, and until they are fine. */
async function draw() {
  const element = document.querySelector("attention-heads") ?? document.createElement("attention-heads");
  document.body.append(element);
  const began = performance.now();
  element.data = { ...Reflect.get(globalThis, "attention") };
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const overview = () => element.shadowRoot?.querySelector(".overview");
  const isFine = () =>
    [...(overview()?.querySelectorAll("canvas") ?? [])].every(
      (canvas) => canvas.width === Math.round(canvas.getBoundingClientRect().width * devicePixelRatio),
    );
  await element.updated;
  do await frame();
  while (overview()?.hasAttribute("aria-busy") ?? true);
  const shown = performance.now() - began;
  while (!isFine()) await frame();
  return { shown, fine: performance.now() - began };
}

await withPages(async (open, version) => {
  console.log(
    `Chromium ${version}; ${layers} layers × ${heads} heads × ${length} tokens; cpu = processor time of the page's main thread`,
  );
  /** @param {string} name @param {boolean} isTold whether the page has shown a small one before */
  const read = async (name, isTold) => {
    const shown = [];
    const fine = [];
    const spent = [];
    for (let reading = 0; reading < READINGS; reading++) {
      const { page, processor } = await open(1280);
      if (isTold) {
        await page.evaluate(prepare, { layers: 1, heads: 2, length: 64 });
        await page.evaluate(draw);
      }
      await page.evaluate(prepare, { layers, heads, length });
      await page.waitForTimeout(PAUSE);
      const before = await processor();
      const drawn = await page.evaluate(draw);
      shown.push(drawn.shown);
      fine.push(drawn.fine);
      spent.push((await processor()) - before);
      await page.close();
    }
    const listed = (/** @type {number[]} */ times) => times.map((time) => time.toFixed(0)).join(", ");
    const middle = [...shown].sort((a, b) => a - b)[READINGS >> 1] ?? Number.NaN;
    const judged = isTold ? `; ${verdict(middle < MOST, `< ${MOST} ms`)}` : "";
    console.log(
      `  ${name}: shown in ${listed(shown)} ms, median ${middle.toFixed(0)} ms${judged}; fine in ${listed(fine)} ms (cpu ${listed(spent)} ms)`,
    );
  };
  await read("after a small text", true);
  await read("first of a page", false);
});
