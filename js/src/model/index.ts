/** The package's entry `lookback/model`. */
export { type GeluOptions, gelu, type LayerNormOptions, layerNorm, type NormOptions, rmsNorm, silu } from "./layers.js";
