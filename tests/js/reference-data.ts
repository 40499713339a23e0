/** Seeded numbers for the reference and for what is held against it, and their way from one layout of R1 to another. */
import { type ReferenceOptions, type ReferenceResult, referenceAttention, type Shape } from "./reference.ts";

// Taken once: inside Jest's realm a look-up of a global is slow.
const { imul } = Math;

/** Mulberry32: small, seeded, the same everywhere. Returns numbers in [0, 1). */
export function randomSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = imul(t ^ (t >>> 15), t | 1);
    t ^= t + imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** `count` float32 numbers spread evenly over [−size, size). */
export function randomFloats(random: () => number, count: number, size = 1): Float32Array {
  const data = new Float32Array(count);
  for (let n = 0; n < count; n++) data[n] = (2 * random() - 1) * size;
  return data;
}

/** [B, H, L, W] → [B, L, H·W] */
export function foldHeads<A extends Float32Array | Float64Array>(
  data: A,
  batch: number,
  heads: number,
  length: number,
  width: number,
): A {
  return permuteHeads(data, batch, heads, length, width);
}

/** [B, L, H·W] → [B, H, L, W] */
export function splitHeads<A extends Float32Array | Float64Array>(
  data: A,
  batch: number,
  length: number,
  heads: number,
  width: number,
): A {
  return permuteHeads(data, batch, length, heads, width);
}

function permuteHeads<A extends Float32Array | Float64Array>(
  data: A,
  batch: number,
  outer: number,
  inner: number,
  width: number,
): A {
  const result = data.slice() as A;
  for (let b = 0; b < batch; b++) {
    for (let o = 0; o < outer; o++) {
      for (let n = 0; n < inner; n++) {
        const from = ((b * outer + o) * inner + n) * width;
        result.set(data.subarray(from, from + width), ((b * inner + n) * outer + o) * width);
      }
    }
  }
  return result;
}

/** Operands in [B, H, L, W], whatever layout they are then given in. */
export interface Operands {
  shape: Shape;
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
}

export function makeShape(partial: Partial<Shape>): Shape {
  const heads = partial.heads ?? 1;
  const headDim = partial.headDim ?? 8;
  return {
    batch: 1,
    heads,
    kvHeads: heads,
    queryLength: 5,
    keyLength: partial.queryLength ?? 5,
    headDim,
    valueDim: headDim,
    ...partial,
  };
}

/** q and k up to `size`, so that scores are about ±size²·√headDim/3 at the default scale. */
export function makeOperands(partial: Partial<Shape>, seed: number, size = 1): Operands {
  const shape = makeShape(partial);
  const random = randomSource(seed);
  const { batch, heads, kvHeads, queryLength, keyLength, headDim, valueDim } = shape;
  return {
    shape,
    q: randomFloats(random, batch * heads * queryLength * headDim, size),
    k: randomFloats(random, batch * kvHeads * keyLength * headDim, size),
    v: randomFloats(random, batch * kvHeads * keyLength * valueDim),
  };
}

/** The reference on the same operands. */
export function refer({ q, k, v, shape }: Operands, options: ReferenceOptions = {}): ReferenceResult {
  return referenceAttention(q, k, v, shape, options);
}
