import { createOn } from "./create.js";
import { type Platform, readByFetch } from "./platform.js";
import type { Lookback, LookbackOptions } from "./types.js";

export * from "./index.js";

// The glue with threads waits at its top level, which only a dynamic import may.
const GLUES = {
  simd: {
    plain: () => import("./wasm/lookback-simd.node.mjs"),
    threaded: () => import("./wasm/lookback-simd-threads.node.mjs"),
  },
  relaxed: {
    plain: () => import("./wasm/lookback-relaxed.node.mjs"),
    threaded: () => import("./wasm/lookback-relaxed-threads.node.mjs"),
  },
};

const platform: Platform = {
  glue: (variant, threaded) => GLUES[variant][threaded ? "threaded" : "plain"](),
  wasmUrl: (variant, threaded) =>
    new URL(`./wasm/lookback-${variant}${threaded ? "-threads" : ""}.wasm`, import.meta.url),
  processors: async () => (await import("node:os")).availableParallelism(),
  async read(url) {
    // A path, unless it has a scheme (of two letters at least: C:\ is a path).
    const address = typeof url === "string" && /^[a-z][a-z\d+.-]+:/i.test(url) ? new URL(url) : url;
    if (typeof address !== "string" && address.protocol !== "file:") return readByFetch(address);
    const { readFile } = await import("node:fs/promises");
    return { bytes: await readFile(address) };
  },
};

/** Starts an instance: chooses the variant, reads the wasm, makes its memory. */
export const createLookback = (options?: LookbackOptions): Promise<Lookback> => createOn(platform, options);
