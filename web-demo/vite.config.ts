import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = fileURLToPath(new URL(".", import.meta.url));

// With these a page may share memory, and so use threads.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default defineConfig({
  root: here,
  // Relative addresses, so that the built page works from any folder of any server.
  base: "./",
  build: { outDir: "dist", emptyOutDir: true, target: "es2022", assetsInlineLimit: 0 },
  // "lookback" is this repository itself, found through the exports of its package.json; its wasm lies one folder up.
  server: { fs: { allow: [".."] }, headers },
  preview: { headers },
});
