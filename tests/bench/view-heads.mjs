/**
 * How long <attention-heads> takes to draw all heads: node tests/bench/view-heads.mjs [layers heads length] (default 12 12 256)
 *
 * In a page of headless Chromium: from setting the data to the end of the frame that shows the last thumbnail, and the processor time of the
 * page's main thread for it, which other programs do not lengthen. The first of the readings has the compiler in it.
 * Target: 12 × 12 heads of 256 tokens within 200 ms.
 */
import { verdict, withPages } from "./page-of-view.mjs";

const [layers = 12, heads = 12, length = 256] = process.argv.slice(2).map(Number);
const READINGS = 5;
const MOST = 200;

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
  const { page, processor } = await open(1280);
  console.log(
    `Chromium ${version}; ${layers} layers × ${heads} heads × ${length} tokens; cpu includes making the data`,
  );
  await page.evaluate(prepare, { layers, heads, length });
  for (let reading = 0; reading < READINGS; reading++) {
    const before = await processor();
    const shown = await page.evaluate(draw);
    const spent = (await processor()) - before;
    console.log(
      `  drawn in ${shown.toFixed(0)} ms (cpu ${spent.toFixed(0)} ms); ${verdict(shown < MOST, `< ${MOST} ms`)}`,
    );
  }
});
