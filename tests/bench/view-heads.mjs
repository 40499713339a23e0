/**
 * How long <attention-heads> takes to draw all heads: node tests/bench/view-heads.mjs [layers heads length] (default 12 12 256)
 *
 * In a page of headless Chromium: from setting the data to the end of the frame that shows the last thumbnail, and the processor time of the
 * page's main thread for it, which other programs do not lengthen. Each reading is of a fresh page: one whose element has shown a small text
 * before, so that what is timed is not the compiler, and one that has shown nothing yet.
 * Target: 12 × 12 heads of 256 tokens within 200 ms, after a small text.
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

/** Runs in the page: milliseconds until all thumbnails are drawn. */
async function draw() {
  const element = document.querySelector("attention-heads") ?? document.createElement("attention-heads");
  document.body.append(element);
  const began = performance.now();
  element.data = { ...Reflect.get(globalThis, "attention") };
  const busy = () => element.shadowRoot?.querySelector(".overview")?.hasAttribute("aria-busy") ?? true;
  await element.updated;
  do await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  while (busy());
  return performance.now() - began;
}

await withPages(async (open, version) => {
  console.log(
    `Chromium ${version}; ${layers} layers × ${heads} heads × ${length} tokens; cpu = processor time of the page's main thread`,
  );
  /** @param {string} name @param {boolean} isTold whether the page has shown a small one before */
  const read = async (name, isTold) => {
    const shown = [];
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
      shown.push(await page.evaluate(draw));
      spent.push((await processor()) - before);
      await page.close();
    }
    const listed = (/** @type {number[]} */ times) => times.map((time) => time.toFixed(0)).join(", ");
    const middle = [...shown].sort((a, b) => a - b)[READINGS >> 1] ?? Number.NaN;
    const judged = isTold ? `; ${verdict(middle < MOST, `< ${MOST} ms`)}` : "";
    console.log(
      `  ${name}: drawn in ${listed(shown)} ms (cpu ${listed(spent)} ms), median ${middle.toFixed(0)} ms${judged}`,
    );
  };
  await read("after a small text", true);
  await read("first of a page", false);
});
