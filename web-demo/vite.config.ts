import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { precache } from "./precache";

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
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: { index: `${here}index.html`, sw: `${here}src/offline/sw.ts` },
      // A service worker rules over the folder it lies in.
      output: { entryFileNames: ({ name }) => (name === "sw" ? "sw.js" : "assets/[name]-[hash].js") },
    },
  },
  worker: { format: "es" },
  plugins: [precache()],
  // "lookback" is this repository itself, found through the exports of its package.json; its wasm lies one folder up.
  server: { fs: { allow: [".."] }, headers },
  preview: { headers },
});
