/** The examples for React and Svelte, built by Vite as anyone's page is, show <attention-map> and hear its events. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build, preview } from "vite";
import { findTools } from "../../bindings/toolchain/find.mjs";
import { attentions } from "./output.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const view = fileURLToPath(new URL("../../dist/view/index.js", import.meta.url));
const executablePath = findTools().chromium;
const skip = executablePath ? false : "Chromium is missing (apt-get install chromium, or LOOKBACK_CHROMIUM=path)";
const output = mkdtempSync(join(tmpdir(), "lookback-frameworks-"));
/** @type {import("playwright-core").Browser | undefined} */
let browser;

before(async () => {
  if (executablePath) browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
after(async () => {
  await browser?.close();
  rmSync(output, { recursive: true, force: true });
});

/** What Svelte's plugin is called cannot be known where its folder has not been installed: the import is made when it is used. */
const plugins = {
  react: async () => [],
  svelte: async () => {
    const { svelte } = await import("@sveltejs/vite-plugin-svelte");
    return [svelte({ configFile: false })];
  },
};

for (const name of /** @type {const} */ (["react", "svelte"])) {
  test(`${name}: data and head are properties, a choice is an event`, { skip }, async () => {
    const outDir = join(output, name);
    const config = {
      root: join(here, name),
      configFile: /** @type {const} */ (false),
      logLevel: /** @type {const} */ ("error"),
      base: "./",
      // In a project of its own the package is found by its name.
      resolve: { alias: { "lookback/view": view } },
      plugins: await plugins[name](),
      oxc: { jsx: { runtime: /** @type {const} */ ("automatic") } },
      build: { outDir, emptyOutDir: true },
      preview: { host: "127.0.0.1", port: 0 },
    };
    await build(config);
    const server = await preview(config);
    const page = await /** @type {import("playwright-core").Browser} */ (browser).newPage();
    try {
      /** @type {string[]} */
      const complaints = [];
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) complaints.push(message.text());
      });
      page.on("pageerror", (error) => complaints.push(String(error)));
      await page.goto(server.resolvedUrls?.local[0] ?? "");
      const shown = () =>
        page.locator("attention-map").evaluate(async (element) => {
          const map = /** @type {import("../../dist/view/index.js").AttentionMap} */ (element);
          await map.updated;
          return { head: map.head, csv: map.toCSV() };
        });
      /** @param {number} head */
      const expected = (head) => {
        const { data = new Float32Array() } = attentions[1] ?? {};
        return Array.from({ length: 5 }, (_, query) =>
          Array.from(data.subarray((head * 5 + query) * 5, (head * 5 + query + 1) * 5)),
        );
      };
      for (const head of [0, 1, 2, 0]) {
        const { head: actual, csv } = await shown();
        assert.equal(actual, head);
        const rows = csv.trim().split("\r\n").slice(1);
        assert.deepEqual(
          rows.map((row) =>
            row
              .split(",")
              .slice(1)
              .map((cell) => Math.fround(Number(cell))),
          ),
          expected(head),
        );
        await page.locator("button", { hasText: "Next head" }).click();
      }
      await page.locator("attention-map .surface").focus();
      for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"]) await page.keyboard.press(key);
      const weight = expected(1)[1]?.[1];
      // A framework draws when its turn comes.
      await page.locator("#chosen", { hasText: "→" }).waitFor();
      assert.equal(await page.locator("#chosen").textContent(), `the → the: ${weight}`);
      assert.deepEqual(complaints, []);
    } finally {
      await page.close();
      await server.close();
    }
  });
}
