/** Small decoders of every family with random weights, in wasm memory and for the reference. */
import type { Lookback } from "lookback";
import { Decoder, type WeightFormat } from "../../../dist/model/decoder.js";
import { heapOf } from "../../../dist/model/layers.js";
import { type DecoderSettings, PLAIN } from "../../../dist/model/settings.js";
import { isLayerSlot, type Slot, slotShape, slotsOf } from "../../../dist/model/slots.js";
import type { ReferenceWeights } from "../reference-decoder.ts";

const LLAMA: DecoderSettings = {
  ...PLAIN,
  ...{ vocabSize: 61, layers: 3, embedDim: 24, heads: 6, kvHeads: 2, headDim: 4, hiddenDim: 37, contextLength: 64 },
  normEpsilon: 1e-5,
  rotary: { dims: 4, base: 10000 },
};
const WIDE: DecoderSettings = { ...LLAMA, headDim: 16, rotary: { dims: 16, base: 500 } };

export const FAMILIES: Readonly<Record<string, DecoderSettings>> = {
  "GPT-2": {
    ...LLAMA,
    ...{ norm: "layer", activation: "gelu_tanh", gated: false, learnedPositions: true, tiedHead: true },
    ...{ queryKeyValueBias: true, outputBias: true, mlpBias: true, kvHeads: 6, rotary: undefined },
  },
  "GPT-2 with erf": {
    ...LLAMA,
    ...{ norm: "layer", activation: "gelu_erf", gated: false, learnedPositions: true, kvHeads: 6, rotary: undefined },
  },
  Llama: LLAMA,
  "Llama, interleaved": { ...LLAMA, tiedHead: true, rotary: { dims: 4, interleaved: true } },
  "Llama 3": {
    ...WIDE,
    rotary: {
      ...{ dims: 16, base: 500 },
      scaling: { type: "llama3", factor: 8, originalLength: 32, lowFrequencyFactor: 1, highFrequencyFactor: 4 },
    },
  },
  "Llama with yarn": {
    ...WIDE,
    rotary: { dims: 16, base: 500, scaling: { type: "yarn", factor: 4, originalLength: 16 } },
  },
  "Qwen 2": { ...LLAMA, queryKeyValueBias: true, tiedHead: true },
  "Qwen 3": { ...WIDE, queryKeyNorm: true },
  Mistral: { ...LLAMA, window: 5 },
  "Gemma 2": {
    ...WIDE,
    ...{
      activation: "gelu_tanh",
      tiedHead: true,
      postNorms: true,
      normWeightsFromOne: true,
      embedScale: Math.sqrt(24),
    },
    ...{ attentionScale: 0.3, attentionSoftcap: 5, logitSoftcap: 3, window: 4, fullEvery: 2, layers: 4 },
  },
  "Gemma 3": {
    ...WIDE,
    ...{ activation: "gelu_tanh", tiedHead: true, postNorms: true, normWeightsFromOne: true, queryKeyNorm: true },
    ...{ window: 4, fullEvery: 3, layers: 4, windowRotaryBase: 100 },
    rotary: { dims: 16, base: 5000, scaling: { type: "linear", factor: 2 } },
  },
};

/** Uniform numbers in (−1, 1) from a seed. */
export function numbers(seed: number): () => number {
  let state = (seed * 48271 + 11) % 2147483647;
  return () => {
    state = (state * 16807) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  };
}

const keyOf = (slot: string, layer: number): string => (isLayerSlot(slot as Slot) ? `${slot}.${layer}` : slot);

/** Weights that keep a random model's numbers near 1. */
export function randomWeights(settings: DecoderSettings, seed: number): Map<string, Float32Array> {
  const random = numbers(seed);
  const weights = new Map<string, Float32Array>();
  for (const slot of slotsOf(settings)) {
    const [rows, columns] = slotShape(settings, slot)!;
    const isNorm = slot.endsWith("NormWeight");
    const size = columns === 1 ? 0.3 : slot.endsWith("Embedding") ? 1 : Math.sqrt(3 / columns);
    const centre = isNorm && !settings.normWeightsFromOne ? 1 : 0;
    for (let layer = 0; layer < (isLayerSlot(slot) ? settings.layers : 1); layer++)
      weights.set(
        keyOf(slot, layer),
        Float32Array.from({ length: rows * columns }, () => centre + size * random()),
      );
  }
  return weights;
}

export const forReference =
  (weights: ReadonlyMap<string, Float32Array>): ReferenceWeights =>
  (slot, layer = 0) =>
    weights.get(keyOf(slot, layer));

/** The decoder, its tensors written in pieces of `rowsAtOnce`. */
export function makeDecoder(
  lb: Lookback,
  settings: DecoderSettings,
  weights: ReadonlyMap<string, Float32Array>,
  format?: WeightFormat,
  rowsAtOnce = 7,
): Decoder {
  const decoder = new Decoder(heapOf(lb, "test"), settings, format);
  for (const slot of slotsOf(settings)) {
    const [rows, columns] = slotShape(settings, slot)!;
    for (let layer = 0; layer < (isLayerSlot(slot) ? settings.layers : 1); layer++) {
      const values = weights.get(keyOf(slot, layer))!;
      const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
      for (let firstRow = 0; firstRow < rows; firstRow += rowsAtOnce) {
        const rowCount = Math.min(rowsAtOnce, rows - firstRow);
        const piece = { slot, layer, firstRow, rowCount, type: "F32" as const, bytes, stride: columns };
        decoder.write({ ...piece, from: firstRow * columns, transposed: false });
      }
    }
  }
  return decoder;
}
