import type { Lookback } from "../types.js";
import { pathSource } from "./files-node.js";
import { loadOn } from "./load-decoder.js";
import type { ModelSource } from "./sources.js";
import type { LoadOptions, Model } from "./types.js";

export * from "./index.js";

/** Loads a model into an instance's memory. A string without a scheme is a path. */
export const loadDecoder = (lb: Lookback, source: ModelSource, options?: LoadOptions): Promise<Model> =>
  loadOn({ path: pathSource }, lb, source, options);
