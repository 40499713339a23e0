import type { DecoderSettings } from "./settings.js";

/** Where a decoder keeps each of its tensors, in the order of the core's enum. */
export const SLOTS = [
  "tokenEmbedding",
  "positionEmbedding",
  "head",
  "finalNormWeight",
  "finalNormBias",
  "attentionNormWeight",
  "attentionNormBias",
  "queryWeight",
  "queryBias",
  "keyWeight",
  "keyBias",
  "valueWeight",
  "valueBias",
  "queryNormWeight",
  "keyNormWeight",
  "outputWeight",
  "outputBias",
  "attentionPostNormWeight",
  "mlpNormWeight",
  "mlpNormBias",
  "gateWeight",
  "gateBias",
  "upWeight",
  "upBias",
  "downWeight",
  "downBias",
  "mlpPostNormWeight",
] as const;
export type Slot = (typeof SLOTS)[number];

/** Once per layer; the others exist once. */
export const isLayerSlot = (slot: Slot): boolean => SLOTS.indexOf(slot) > SLOTS.indexOf("finalNormBias");

/** [rows, columns] of a slot (vectors: one column), or undefined where such a decoder has none. */
export function slotShape(s: DecoderSettings, slot: Slot): readonly [number, number] | undefined {
  const query = s.heads * s.headDim;
  const key = s.kvHeads * s.headDim;
  const when = (has: boolean, rows: number, columns = 1) => (has ? ([rows, columns] as const) : undefined);
  const layerNorm = s.norm === "layer";
  switch (slot) {
    case "tokenEmbedding":
      return [s.vocabSize, s.embedDim];
    case "positionEmbedding":
      return when(s.learnedPositions, s.contextLength, s.embedDim);
    case "head":
      return when(!s.tiedHead, s.vocabSize, s.embedDim);
    case "finalNormWeight":
    case "attentionNormWeight":
    case "mlpNormWeight":
      return [s.embedDim, 1];
    case "finalNormBias":
    case "attentionNormBias":
    case "mlpNormBias":
      return when(layerNorm, s.embedDim);
    case "queryWeight":
      return [query, s.embedDim];
    case "queryBias":
      return when(s.queryKeyValueBias, query);
    case "keyWeight":
    case "valueWeight":
      return [key, s.embedDim];
    case "keyBias":
    case "valueBias":
      return when(s.queryKeyValueBias, key);
    case "queryNormWeight":
    case "keyNormWeight":
      return when(s.queryKeyNorm, s.headDim);
    case "outputWeight":
      return [s.embedDim, query];
    case "outputBias":
      return when(s.outputBias, s.embedDim);
    case "attentionPostNormWeight":
    case "mlpPostNormWeight":
      return when(s.postNorms, s.embedDim);
    case "gateWeight":
      return when(s.gated, s.hiddenDim, s.embedDim);
    case "gateBias":
      return when(s.gated && s.mlpBias, s.hiddenDim);
    case "upWeight":
      return [s.hiddenDim, s.embedDim];
    case "upBias":
      return when(s.mlpBias, s.hiddenDim);
    case "downWeight":
      return [s.embedDim, s.hiddenDim];
    case "downBias":
      return when(s.mlpBias, s.embedDim);
  }
}

/** The slots that such a decoder has. */
export const slotsOf = (s: DecoderSettings): Slot[] => SLOTS.filter((slot) => slotShape(s, slot) !== undefined);

export const parameterCount = (s: DecoderSettings): number =>
  slotsOf(s).reduce((sum, slot) => {
    const [rows, columns] = slotShape(s, slot)!;
    return sum + rows * columns * (isLayerSlot(slot) ? s.layers : 1);
  }, 0);
