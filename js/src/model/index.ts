/** What both entries, node.ts and web.ts, export. */
export { type ErrorCode, LookbackError } from "../errors.js";
export { type GeluOptions, gelu, type LayerNormOptions, layerNorm, type NormOptions, rmsNorm, silu } from "./layers.js";
export type { Progress } from "./pour.js";
export type { FileSource, ModelSource, NamedFiles } from "./sources.js";
export type * from "./types.js";
