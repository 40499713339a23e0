/** npm run bench:browser: ours and onnxruntime-web in Chromium, each case in a page of its own, cross-origin isolated. */
import { chromium } from "playwright-core";
import { findTools } from "../../bindings/toolchain/find.mjs";
import { Advice } from "../../bindings/toolchain/shell.mjs";
import { servePage } from "./node/serve-page.mjs";
import { readOptions } from "./options.mjs";
import { asProgram, wholeRun } from "./whole-run.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];

/** @typedef {import("./core/types.ts").RawRow} RawRow */

await asProgram(async () => {
  const options = readOptions(process.argv.slice(2), "browser");
  if (options.help) return console.log(options.helpText);
  const executablePath = findTools().chromium;
  if (!executablePath) throw new Advice("Chromium was not found (LOOKBACK_CHROMIUM = its program).");
  const server = await servePage();
  const browser = await chromium.launch({ executablePath, headless: true, args: FLAGS });
  try {
    const cdp = await browser.newBrowserCDPSession();
    const { product, jsVersion } = await cdp.send("Browser.getVersion");
    await wholeRun(options, {
      engine: { engine: product.replace(/^(Headless)?Chrome\//, "Chromium "), v8: jsVersion },
      async runCase(task) {
        const page = await browser.newPage();
        try {
          await page.goto(server.url);
          await page.waitForFunction(() => "runCase" in globalThis);
          return /** @type {RawRow[]} */ (
            await page.evaluate((given) => Reflect.get(globalThis, "runCase")(given), task)
          );
        } finally {
          await page.close();
        }
      },
    });
  } finally {
    await browser.close();
    server.close();
  }
});
