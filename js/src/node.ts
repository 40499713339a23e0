import { createOn } from "./create.js";
import { type Platform, readByFetch } from "./platform.js";
import type { Lookback, LookbackOptions } from "./types.js";

export * from "./index.js";

const platform: Platform = {
  glue: (variant) =>
    variant === "simd" ? import("./wasm/lookback-simd.node.mjs") : import("./wasm/lookback-relaxed.node.mjs"),
  wasmUrl: (variant) => new URL(`./wasm/lookback-${variant}.wasm`, import.meta.url),
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
