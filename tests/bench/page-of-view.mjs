/** A page of headless Chromium that knows the elements of lookback/view, at two pixels per CSS pixel. */
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import sirv from "sirv";
import { findTools } from "../../bindings/toolchain/find.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const PAGE = `<!doctype html><meta charset="utf-8"><title>View</title><link rel="icon" href="data:,"><body></body>`;

/**
 * @typedef {object} View
 * @property {import("playwright-core").Page} page
 * @property {() => Promise<number>} processor milliseconds of the page's main thread so far, which other programs do not lengthen
 */

/** @param {(open: (width: number) => Promise<View>, version: string) => Promise<void>} act `open` makes a fresh page of that width. */
export async function withPages(act) {
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
  const open = async (/** @type {number} */ width) => {
    const page = await browser.newPage({ viewport: { width, height: 900 }, deviceScaleFactor: 2 });
    const devTools = await page.context().newCDPSession(page);
    await devTools.send("Performance.enable", { timeDomain: "threadTicks" });
    const processor = async () => {
      const { metrics } = await devTools.send("Performance.getMetrics");
      return 1000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN);
    };
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.evaluate(() => import(/** @type {string} */ ("/view/view.js")));
    return { page, processor };
  };
  try {
    await act(open, browser.version());
  } finally {
    await browser.close();
    server.close();
  }
}

/** A reading beside its target. @param {boolean} met @param {string} target */
export const verdict = (met, target) => `target ${target}: ${met ? "met" : "missed"}`;
