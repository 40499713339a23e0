import type { RotaryEmbedding } from "../rotary-types.js";

export type Activation = "gelu_tanh" | "gelu_erf" | "silu";

/** What a decoder is made of, whatever file it comes from. */
export interface DecoderSettings {
  vocabSize: number;
  layers: number;
  embedDim: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  /** The width inside of the MLP. */
  hiddenDim: number;
  /** Positions 0 … contextLength − 1 exist. */
  contextLength: number;
  norm: "layer" | "rms";
  activation: Activation;
  /** SwiGLU, GEGLU: f(gate · x) ⊙ (up · x). */
  gated: boolean;
  /** A table of positions instead of rotary ones. */
  learnedPositions: boolean;
  /** The head is the token embedding. */
  tiedHead: boolean;
  queryKeyValueBias: boolean;
  outputBias: boolean;
  mlpBias: boolean;
  /** An RMS norm over each head's queries and keys. */
  queryKeyNorm: boolean;
  /** Norms after attention and MLP, before they are added. */
  postNorms: boolean;
  /** A norm's weights are stored less 1. */
  normWeightsFromOne: boolean;
  normEpsilon: number;
  embedScale: number;
  /** 0 = 1/√headDim. */
  attentionScale: number;
  /** 0 = none. */
  attentionSoftcap: number;
  logitSoftcap: number;
  /** Tokens that a windowed layer sees, the position itself included; 0 = every layer sees all. */
  window: number;
  /** Layer l is windowed iff l ≥ firstWindowedLayer and (fullEvery = 0 or (l + 1) mod fullEvery ≠ 0). */
  firstWindowedLayer: number;
  fullEvery: number;
  rotary: RotaryEmbedding | undefined;
  /** Windowed layers turn by this base, without scaling; 0 = as the others. */
  windowRotaryBase: number;
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
