import type { Lookback } from "../types.js";
import { loadOn } from "./load-decoder.js";
import type { ModelSource } from "./sources.js";
import type { LoadOptions, Model } from "./types.js";

export * from "./index.js";

/** Loads a model into an instance's memory. A string is a URL. */
export const loadDecoder = (lb: Lookback, source: ModelSource, options?: LoadOptions): Promise<Model> =>
  loadOn({}, lb, source, options);
