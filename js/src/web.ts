import { createOn } from "./create.js";
import { type Platform, readByFetch } from "./platform.js";
import type { Lookback, LookbackOptions } from "./types.js";

export * from "./index.js";

// Every name is written out, so that bundlers find the files.
const FILES = {
  simd: {
    plain: () => import("./wasm/lookback-simd.web.mjs"),
    plainUrl: () => new URL("./wasm/lookback-simd.wasm", import.meta.url),
    threaded: () => import("./wasm/lookback-simd-threads.web.mjs"),
    threadedUrl: () => new URL("./wasm/lookback-simd-threads.wasm", import.meta.url),
  },
  relaxed: {
    plain: () => import("./wasm/lookback-relaxed.web.mjs"),
    plainUrl: () => new URL("./wasm/lookback-relaxed.wasm", import.meta.url),
    threaded: () => import("./wasm/lookback-relaxed-threads.web.mjs"),
    threadedUrl: () => new URL("./wasm/lookback-relaxed-threads.wasm", import.meta.url),
  },
};

const platform: Platform = {
  glue: (variant, threaded) => FILES[variant][threaded ? "threaded" : "plain"](),
  wasmUrl: (variant, threaded) => FILES[variant][threaded ? "threadedUrl" : "plainUrl"](),
  processors: () => navigator.hardwareConcurrency ?? 1,
  read: readByFetch,
};

/** Starts an instance: chooses the variant, fetches the wasm, makes its memory. */
export const createLookback = (options?: LookbackOptions): Promise<Lookback> => createOn(platform, options);
