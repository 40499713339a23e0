/**
 * How long <attention-heads> takes to draw all heads: node tests/bench/view-heads.mjs [layers heads length] (default 12 12 256)
 *
 * In a page of headless Chromium: from setting the data to the end of the frame that shows the last thumbnail, and the processor time of the
 * page's main thread for it, which other programs do not lengthen. The first of the readings has the compiler in it.
 */
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import sirv from "sirv";
import { findTools } from "../../bindings/toolchain/find.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const [layers = 12, heads = 12, length = 256] = process.argv.slice(2).map(Number);
const PAGE = `<!doctype html><meta charset="utf-8"><title>Heads</title><link rel="icon" href="data:,"><body></body>`;
const READINGS = 5;

/** Runs in the page: the data of causal heads. @param {{ layers: number, heads: number, length: number }} sizes */
async function prepare({ layers, heads, length }) {
  await import(/** @type {string} */ ("/view/view.js"));
  const weights = Array.from({ length: layers }, (_, layer) => {
    const data = new Float32Array(heads * length * length);
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
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, deviceScaleFactor: 2 });
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("Performance.enable", { timeDomain: "threadTicks" });
  const processor = async () => {
    const { metrics } = await devTools.send("Performance.getMetrics");
    return 1000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN);
  };
  await page.goto(`http://127.0.0.1:${port}/`);
  console.log(
    `Chromium ${browser.version()}; ${layers} layers × ${heads} heads × ${length} tokens; cpu includes making the data`,
  );
  await page.evaluate(prepare, { layers, heads, length });
  for (let reading = 0; reading < READINGS; reading++) {
    const before = await processor();
    const shown = await page.evaluate(draw);
    console.log(`  drawn in ${shown.toFixed(0)} ms (cpu ${((await processor()) - before).toFixed(0)} ms)`);
  }
} finally {
  await browser.close();
  server.close();
}
