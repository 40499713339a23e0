/**
 * How long <attention-map> takes: node tests/bench/view.mjs [length …] (default 256 1024 4096)
 *
 * For each length, in a fresh page of headless Chromium at two pixels per CSS pixel: the time from setting the data of a causal head to the end
 * of the frame that shows it, and the time between frames while the map is zoomed, dragged with cells of 12 and of 2 pixels, and zoomed out.
 *
 * Targets: 4096 × 4096 painted within 300 ms; 50 frames a second, so half of the frames within 20 ms.
 */
import { verdict, withPages } from "./page-of-view.mjs";

const lengths = process.argv.slice(2).map(Number);
const FRAMES = 120;
const MOST_PAINT = 300;
const MOST_FRAME = 20;

/** Runs in the page: a causal head, and an element that has shown a small one, so that what is timed is not the compiler. @param {number} length */
async function prepare(length) {
  // Written whole, as every result of a computation is: memory that nobody has touched yet costs at its first reading.
  const data = new Float32Array(length * length).fill(0);
  let state = 1;
  for (let query = 0; query < length; query++) {
    const row = data.subarray(query * length, query * length + query + 1);
    let sum = 0;
    for (let key = 0; key <= query; key++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      row[key] = (state / 2 ** 32) ** 8 + (query - key < 3 ? 0.5 : 0) + (key === 0 ? 1 : 0);
      sum += row[key] ?? 0;
    }
    for (let key = 0; key <= query; key++) row[key] = (row[key] ?? 0) / sum;
  }
  const map = document.createElement("attention-map");
  document.body.append(map);
  map.data = { data: data.slice(0, 64 * 64), dims: [64, 64] };
  await map.updated;
  Object.assign(globalThis, { data });
}

/** Runs in the page: milliseconds until the frame that shows the data is done. @param {number} length */
async function paint(length) {
  const map = /** @type {HTMLElementTagNameMap["attention-map"]} */ (document.querySelector("attention-map"));
  const began = performance.now();
  map.data = { data: Reflect.get(globalThis, "data"), dims: [length, length] };
  await map.updated;
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  return performance.now() - began;
}

/**
 * Runs in the page: milliseconds between frames, sorted.
 * @param {{ length: number, frames: number, motion: string }} task
 */
async function move({ length, frames, motion }) {
  const map = /** @type {HTMLElementTagNameMap["attention-map"]} */ (document.querySelector("attention-map"));
  const fit = map.drawnBox.width / length;
  const deepest = 60;
  const factor = (deepest / fit) ** (1 / frames);
  const query = Math.floor(length / 3);
  const key = Math.floor(length / 4);
  const step = (/** @type {number} */ i) => {
    if (motion === "zoom in") map.zoomTo(fit * factor ** i, { query, key });
    if (motion === "zoom out") map.zoomTo(deepest / factor ** i, { query, key });
    if (motion === "drag large") map.zoomTo(12, { query: query + i, key: key + i / 2 });
    if (motion === "drag small") map.zoomTo(2, { query: query + i * 4, key: key + i * 3 });
  };
  const frame = () => new Promise((/** @type {(at: number) => void} */ resolve) => requestAnimationFrame(resolve));
  await frame();
  let last = await frame();
  const times = [];
  for (let i = 0; i < frames; i++) {
    step(i);
    const now = await frame();
    times.push(now - last);
    last = now;
  }
  return times.sort((a, b) => a - b);
}

await withPages(async (open, version) => {
  console.log(
    `Chromium ${version}; cpu = processor time of the page's main thread, which other programs do not lengthen`,
  );
  for (const length of lengths.length > 0 ? lengths : [256, 1024, 4096]) {
    const { page, processor } = await open(1000);
    await page.evaluate(prepare, length);
    let before = await processor();
    const shown = await page.evaluate(paint, length);
    let after = await processor();
    const judged = length <= 4096 ? `; ${verdict(shown < MOST_PAINT, `< ${MOST_PAINT} ms`)}` : "";
    console.log(
      `${length} × ${length}: first paint ${shown.toFixed(0)} ms (cpu ${(after - before).toFixed(0)} ms)${judged}`,
    );
    for (const motion of ["zoom in", "drag large", "drag small", "zoom out"]) {
      before = await processor();
      const times = await page.evaluate(move, { length, frames: FRAMES, motion });
      after = await processor();
      const at = (/** @type {number} */ share) => times[Math.floor(times.length * share)] ?? Number.NaN;
      console.log(
        `  ${motion}: a frame in ${at(0.5).toFixed(1)} ms (median), ${at(0.95).toFixed(1)} ms (95 %), cpu ${((after - before) / FRAMES).toFixed(1)} ms; ${verdict(at(0.5) <= MOST_FRAME, `≤ ${MOST_FRAME} ms`)}`,
      );
    }
    await page.close();
  }
});
