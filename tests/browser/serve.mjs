/** Builds the demo and serves the result; prints its address as JSON once it answers, and stops with its input. */
import { fileURLToPath } from "node:url";
import { build, preview } from "vite";

const root = fileURLToPath(new URL("../../web-demo", import.meta.url));
const configFile = fileURLToPath(new URL("../../web-demo/vite.config.ts", import.meta.url));

await build({ root, configFile, logLevel: "warn" });
const server = await preview({
  root,
  configFile,
  logLevel: "error",
  preview: { host: "127.0.0.1", port: 0, strictPort: false },
});
const [url] = server.resolvedUrls?.local ?? [];
if (!url) throw new Error("the preview server has no address");
console.log(JSON.stringify({ url }));

// The tests hold the other end of this pipe: should they die, the server ends too.
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
