/** A decoder in float64, one sequence at a time and without a cache. */
import { type ReferenceRotary, referenceRotary } from "./reference-rotary.ts";

export interface ReferenceConfig {
  vocabSize: number;
  layers: number;
  embedDim: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  hiddenDim: number;
  norm: "layer" | "rms";
  activation: "gelu_tanh" | "gelu_erf" | "silu";
  gated: boolean;
  learnedPositions: boolean;
  tiedHead: boolean;
  queryKeyNorm: boolean;
  postNorms: boolean;
  normWeightsFromOne: boolean;
  normEpsilon: number;
  embedScale: number;
  attentionScale: number;
  attentionSoftcap: number;
  logitSoftcap: number;
  window: number;
  firstWindowedLayer: number;
  fullEvery: number;
  rotary: object | undefined;
  windowRotaryBase: number;
}

/** Row-major [rows, columns] by "slot" or "slot.layer"; undefined where the decoder has none. */
export type ReferenceWeights = (slot: string, layer?: number) => ArrayLike<number> | undefined;

export interface ReferenceOutputs {
  /** [L][vocabSize] */
  logits: number[][];
  /** [layers][heads][L][L] */
  weights: number[][][][];
  /** Logits read after each layer: [layers][L][vocabSize]. */
  lens: number[][][];
}

const dot = (a: ArrayLike<number>, b: ArrayLike<number>, width: number, aFrom = 0, bFrom = 0): number => {
  let sum = 0;
  for (let i = 0; i < width; i++) sum += a[aFrom + i]! * b[bFrom + i]!;
  return sum;
};

/** By the series of erf, and for large |x| the continued fraction of erfc. */
export function erf(x: number): number {
  const size = Math.abs(x);
  if (size < 3) {
    let [term, sum] = [x, x];
    for (let n = 1; n < 100; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-x * x) / (Math.sqrt(Math.PI) * (size + fraction)));
}

export const ACTIVATIONS: Readonly<Record<ReferenceConfig["activation"], (x: number) => number>> = {
  gelu_tanh: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  gelu_erf: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  silu: (x) => x / (1 + Math.exp(-x)),
};

/** Everything of the tokens at positions 0 … L − 1. */
export function referenceDecoder(
  c: ReferenceConfig,
  weights: ReferenceWeights,
  tokens: readonly number[],
): ReferenceOutputs {
  const length = tokens.length;
  const map = (x: ArrayLike<number>, slot: string, layer: number, outputs: number): number[] => {
    const weight = weights(`${slot}Weight`, layer)!;
    const bias = weights(`${slot}Bias`, layer);
    return Array.from({ length: outputs }, (_, o) => dot(weight, x, x.length, o * x.length) + (bias?.[o] ?? 0));
  };
  const norm = (x: ArrayLike<number>, slot: string, layer?: number, kind = c.norm): number[] => {
    const values = Array.from(x);
    const mean = kind === "layer" ? values.reduce((sum, v) => sum + v, 0) / values.length : 0;
    const variance = values.reduce((sum, v) => sum + (v - mean) ** 2, 0) / values.length;
    const weight = weights(`${slot}Weight`, layer)!;
    const bias = weights(`${slot}Bias`, layer);
    return values.map(
      (v, i) =>
        ((v - mean) / Math.sqrt(variance + c.normEpsilon)) * (weight[i]! + (c.normWeightsFromOne ? 1 : 0)) +
        (bias?.[i] ?? 0),
    );
  };
  const windowed = (layer: number) =>
    c.window > 0 && layer >= c.firstWindowedLayer && (c.fullEvery === 0 || (layer + 1) % c.fullEvery !== 0);
  const turned = (row: number[], width: number, position: number, layer: number): number[] => {
    if (!c.rotary) return row;
    const own = c.rotary as ReferenceRotary;
    const options: ReferenceRotary =
      windowed(layer) && c.windowRotaryBase > 0
        ? { dims: own.dims, interleaved: own.interleaved ?? false, base: c.windowRotaryBase }
        : own;
    return Array.from(referenceRotary(row, width, Array(row.length / width).fill(position), options));
  };
  const cap = (value: number, limit: number) => (limit > 0 ? limit * Math.tanh(value / limit) : value);
  const headWise = (row: number[], slot: string, layer: number): number[] =>
    c.queryKeyNorm
      ? Array.from({ length: row.length / c.headDim }, (_, h) =>
          norm(row.slice(h * c.headDim, (h + 1) * c.headDim), slot, layer, "rms"),
        ).flat()
      : row;
  const head = (row: number[]): number[] => {
    const normed = norm(row, "finalNorm");
    const table = weights(c.tiedHead ? "tokenEmbedding" : "head")!;
    return Array.from({ length: c.vocabSize }, (_, o) =>
      cap(dot(table, normed, c.embedDim, o * c.embedDim), c.logitSoftcap),
    );
  };

  const embedding = weights("tokenEmbedding")!;
  let x = tokens.map((token, position) =>
    Array.from(
      { length: c.embedDim },
      (_, i) =>
        c.embedScale * embedding[token * c.embedDim + i]! +
        (c.learnedPositions ? weights("positionEmbedding")![position * c.embedDim + i]! : 0),
    ),
  );
  const result: ReferenceOutputs = { logits: [], weights: [], lens: [] };
  const scale = c.attentionScale || 1 / Math.sqrt(c.headDim);
  for (let layer = 0; layer < c.layers; layer++) {
    const project = (slot: string, heads: number) =>
      x.map((row) => map(norm(row, "attentionNorm", layer), slot, layer, heads * c.headDim));
    const queries = project("query", c.heads).map((row, i) =>
      turned(headWise(row, "queryNorm", layer), c.headDim, i, layer),
    );
    const keys = project("key", c.kvHeads).map((row, i) =>
      turned(headWise(row, "keyNorm", layer), c.headDim, i, layer),
    );
    const values = project("value", c.kvHeads);
    const attended = x.map(() => Array<number>(c.heads * c.headDim).fill(0));
    const shown = Array.from({ length: c.heads }, (_, h) => {
      const kv = Math.floor((h * c.kvHeads) / c.heads);
      return queries.map((query, i) => {
        const first = windowed(layer) ? Math.max(0, i - c.window + 1) : 0;
        const scores = keys.map((key, j) =>
          j < first || j > i
            ? -Infinity
            : cap(scale * dot(query, key, c.headDim, h * c.headDim, kv * c.headDim), c.attentionSoftcap),
        );
        const most = Math.max(...scores);
        const exponents = scores.map((score) => Math.exp(score - most));
        const sum = exponents.reduce((total, e) => total + e, 0);
        const row = exponents.map((e) => e / sum);
        for (let d = 0; d < c.headDim; d++)
          attended[i]![h * c.headDim + d] = row.reduce((total, w, j) => total + w * values[j]![kv * c.headDim + d]!, 0);
        return row;
      });
    });
    result.weights.push(shown);
    const add = (rows: number[][], slot: string) => {
      x = x.map((row, i) => {
        const own = c.postNorms ? norm(rows[i]!, slot, layer) : rows[i]!;
        return row.map((value, at) => value + own[at]!);
      });
    };
    add(
      attended.map((row) => map(row, "output", layer, c.embedDim)),
      "attentionPostNorm",
    );
    const f = ACTIVATIONS[c.activation];
    add(
      x.map((row) => {
        const normed = norm(row, "mlpNorm", layer);
        const up = map(normed, "up", layer, c.hiddenDim);
        const gate = c.gated ? map(normed, "gate", layer, c.hiddenDim) : undefined;
        return map(gate ? gate.map((g, n) => f(g) * up[n]!) : up.map(f), "down", layer, c.embedDim);
      }),
      "mlpPostNorm",
    );
    result.lens.push(x.map(head));
  }
  result.logits = x.map(head);
  if (result.logits.length !== length) throw new Error("a row per token");
  return result;
}
