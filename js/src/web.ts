import { createOn } from "./create.js";
import { type Platform, readByFetch } from "./platform.js";
import type { Lookback, LookbackOptions } from "./types.js";

export * from "./index.js";

// Every name is written out, so that bundlers find the files.
const platform: Platform = {
  glue: (variant) =>
    variant === "simd" ? import("./wasm/lookback-simd.web.mjs") : import("./wasm/lookback-relaxed.web.mjs"),
  wasmUrl: (variant) =>
    variant === "simd"
      ? new URL("./wasm/lookback-simd.wasm", import.meta.url)
      : new URL("./wasm/lookback-relaxed.wasm", import.meta.url),
  read: readByFetch,
};

/** Starts an instance: chooses the variant, fetches the wasm, makes its memory. */
export const createLookback = (options?: LookbackOptions): Promise<Lookback> => createOn(platform, options);
