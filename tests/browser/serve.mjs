/** Builds the demo and serves the result; prints its address as JSON once it answers, and stops with its input. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, loadConfigFromFile, preview } from "vite";
import { testPages } from "./test-pages.mjs";

const root = fileURLToPath(new URL("../../web-demo", import.meta.url));
const configFile = fileURLToPath(new URL("../../web-demo/vite.config.ts", import.meta.url));

await build({ root, configFile, logLevel: "warn" });
const config = await loadConfigFromFile({ command: "serve", mode: "production" }, configFile, root);
const headers = /** @type {Record<string, string>} */ (config?.config.preview?.headers ?? {});
const server = await preview({
  root,
  configFile,
  plugins: [testPages(join(root, "dist"), headers)],
  logLevel: "error",
  preview: { host: "127.0.0.1", port: 0, strictPort: false },
});
const [url] = server.resolvedUrls?.local ?? [];
if (!url) throw new Error("the preview server has no address");
console.log(JSON.stringify({ url }));

// The tests hold the other end of this pipe: should they die, the server ends too.
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
