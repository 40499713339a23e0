import type { RawDecoderConfig } from "../module-decoder.js";
import type { RotaryEmbedding } from "../rotary-types.js";

export type Activation = "gelu_tanh" | "gelu_erf" | "silu";

/** What a decoder is made of, whatever file it comes from: the core's record, with words for its numbers. */
export interface DecoderSettings
  extends Omit<RawDecoderConfig, "norm" | "activation" | "rotary" | "weightType" | "weightGroup"> {
  norm: "layer" | "rms";
  activation: Activation;
  rotary: RotaryEmbedding | undefined;
}

/** What most families leave as it is. */
export const PLAIN: DecoderSettings = {
  ...{ vocabSize: 0, layers: 0, embedDim: 0, heads: 0, kvHeads: 0, headDim: 0, hiddenDim: 0, contextLength: 0 },
  ...{ norm: "rms", activation: "silu", gated: true, learnedPositions: false, tiedHead: false },
  ...{ queryKeyValueBias: false, outputBias: false, mlpBias: false, queryKeyNorm: false, postNorms: false },
  ...{ normWeightsFromOne: false, normEpsilon: 1e-6, embedScale: 1, attentionScale: 0, attentionSoftcap: 0 },
  ...{ logitSoftcap: 0, window: 0, firstWindowedLayer: 0, fullEvery: 0, rotary: undefined, windowRotaryBase: 0 },
};

export const isWindowed = (s: DecoderSettings, layer: number): boolean =>
  s.window > 0 && layer >= s.firstWindowedLayer && (s.fullEvery === 0 || (layer + 1) % s.fullEvery !== 0);
