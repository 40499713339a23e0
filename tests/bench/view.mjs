/**
 * How long <attention-map> takes: node tests/bench/view.mjs [length …] (default 256 1024 4096)
 *
 * For each length, in a fresh page of headless Chromium at two pixels per CSS pixel: the time from setting the data of a causal head to the end
 * of the frame that shows it, and the time between frames while the map is zoomed, dragged with cells of 12 and of 2 pixels, and zoomed out.
 */
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import sirv from "sirv";
import { findTools } from "../../bindings/toolchain/find.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const lengths = process.argv.slice(2).map(Number);
const PAGE = `<!doctype html><meta charset="utf-8"><title>Map</title><link rel="icon" href="data:,"><body></body>`;
const FRAMES = 120;

/** Runs in the page: a causal head, and an element that has shown a small one, so that what is timed is not the compiler. @param {number} length */
async function prepare(length) {
  await import(/** @type {string} */ ("/view/view.js"));
  const data = new Float32Array(length * length);
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

const executablePath = findTools().chromium;
if (!executablePath) throw new Error("Chromium was not found (LOOKBACK_CHROMIUM = its program)");
const files = sirv(join(root, "dist"));
const server = createServer((request, response) =>
  request.url === "/" ? response.setHeader("content-type", "text/html").end(PAGE) : files(request, response),
);
await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
const address = server.address();
const port = typeof address === "object" && address ? address.port : 0;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  console.log(
    `Chromium ${browser.version()}; cpu = processor time of the page's main thread, which other programs do not lengthen`,
  );
  for (const length of lengths.length > 0 ? lengths : [256, 1024, 4096]) {
    const page = await browser.newPage({ viewport: { width: 1000, height: 900 }, deviceScaleFactor: 2 });
    const devTools = await page.context().newCDPSession(page);
    await devTools.send("Performance.enable", { timeDomain: "threadTicks" });
    const processor = async () => {
      const { metrics } = await devTools.send("Performance.getMetrics");
      return 1000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN);
    };
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.evaluate(prepare, length);
    let before = await processor();
    const shown = await page.evaluate(paint, length);
    let after = await processor();
    console.log(`${length} × ${length}: first paint ${shown.toFixed(0)} ms (cpu ${(after - before).toFixed(0)} ms)`);
    for (const motion of ["zoom in", "drag large", "drag small", "zoom out"]) {
      before = await processor();
      const times = await page.evaluate(move, { length, frames: FRAMES, motion });
      after = await processor();
      const at = (/** @type {number} */ share) => (times[Math.floor(times.length * share)] ?? Number.NaN).toFixed(1);
      console.log(
        `  ${motion}: a frame in ${at(0.5)} ms (median), ${at(0.95)} ms (95 %), cpu ${((after - before) / FRAMES).toFixed(1)} ms`,
      );
    }
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
}
