/** R13 in plain float64 loops: the summaries of attention weights. Everything here is [B, H, Lq, …] in row-major order. */
import { offsetOfRow, type ReferenceOptions, type Shape } from "./reference.ts";

export interface Summaries {
  topK: { indices: Int32Array; weights: Float64Array };
  /** In nats, [B, H, Lq]. */
  entropy: Float64Array;
  /** Σ w·(i + offset − j), [B, H, Lq]. */
  distance: Float64Array;
}

/** The k largest weights of every row by falling weight, then lower j; empty places are index −1, weight 0. */
export function summarize(weights: Float64Array, shape: Shape, options: ReferenceOptions, k: number): Summaries {
  const { batch, heads, queryLength, keyLength } = shape;
  const rows = batch * heads * queryLength;
  const summaries: Summaries = {
    topK: { indices: new Int32Array(rows * k).fill(-1), weights: new Float64Array(rows * k) },
    entropy: new Float64Array(rows),
    distance: new Float64Array(rows),
  };
  for (let row = 0; row < rows; row++) {
    const i = row % queryLength;
    const position = i + offsetOfRow(options, shape, Math.floor(row / (heads * queryLength)));
    const order: number[] = [];
    for (let j = 0; j < keyLength; j++) {
      const weight = weights[row * keyLength + j]!;
      if (weight === 0) continue;
      order.push(j);
      summaries.entropy[row] = summaries.entropy[row]! - weight * Math.log(weight);
      summaries.distance[row] = summaries.distance[row]! + weight * (position - j);
    }
    const weightOf = (j: number) => weights[row * keyLength + j]!;
    order.sort((a, b) => weightOf(b) - weightOf(a) || a - b);
    for (let place = 0; place < Math.min(k, order.length); place++) {
      const j = order[place]!;
      summaries.topK.indices[row * k + place] = j;
      summaries.topK.weights[row * k + place] = weightOf(j);
    }
  }
  return summaries;
}

/** [B, H, R, C]: the mean over a cell's rows of the weight they give to its keys. */
export function weightMap(weights: Float64Array, shape: Shape, rowCells: number, keyCells: number): Float64Array {
  const { batch, heads, queryLength, keyLength } = shape;
  const map = new Float64Array(batch * heads * rowCells * keyCells);
  const edge = (cell: number, length: number, cells: number) => Math.floor((cell * length) / cells);
  for (let head = 0; head < batch * heads; head++) {
    for (let r = 0; r < rowCells; r++) {
      const from = edge(r, queryLength, rowCells);
      const to = edge(r + 1, queryLength, rowCells);
      for (let c = 0; c < keyCells; c++) {
        let sum = 0;
        for (let i = from; i < to; i++) {
          for (let j = edge(c, keyLength, keyCells); j < edge(c + 1, keyLength, keyCells); j++) {
            sum += weights[(head * queryLength + i) * keyLength + j]!;
          }
        }
        map[(head * rowCells + r) * keyCells + c] = sum / (to - from);
      }
    }
  }
  return map;
}
