import { type ErrorCode, fail, shape } from "./errors.js";
import type { RawView } from "./module.js";

/** The sizes of one attention call. */
export interface Geometry {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly queryLength: number;
  readonly keyLength: number;
  readonly headDim: number;
  readonly valueDim: number;
}

/** How row-major data is seen as [batch, heads, length, width]; strides in elements. */
export interface Layout {
  readonly batch: number;
  readonly heads: number;
  readonly length: number;
  readonly width: number;
  readonly batchStride: number;
  readonly headStride: number;
  readonly rowStride: number;
}

export interface AttentionShape {
  readonly geometry: Geometry;
  readonly layouts: {
    readonly queries: Layout;
    readonly keys: Layout;
    readonly values: Layout;
    readonly output: Layout;
  };
  readonly outputDims: readonly number[];
}

type Dims = readonly number[];

const LAYOUTS = "[B, heads, L, headDim], or with option heads [B, L, heads·headDim] or [L, heads·headDim]";

/** [B, H, L, D], or folded [B, L, H·D]; [L, H·D] is a batch of one. */
const layoutOf = (folded: boolean, batch: number, heads: number, length: number, width: number): Layout => ({
  batch,
  heads,
  length,
  width,
  batchStride: heads * length * width,
  headStride: folded ? width : length * width,
  rowStride: folded ? heads * width : width,
});

function checkRank(dims: Dims, name: string): void {
  if (dims.length < 2 || dims.length > 4)
    fail("bad-rank", `${name} has ${dims.length} dims ${shape(dims)}; accepted are ${LAYOUTS}.`);
}

export function readLayout(dims: Dims, name: string, heads: number | undefined, option: "heads" | "kvHeads"): Layout {
  checkRank(dims, name);
  const [last, length] = [dims.at(-1)!, dims.at(-2)!];
  if (dims.length === 4) {
    const [batch, own] = dims as [number, number];
    if (heads !== undefined && heads !== own) {
      const hint =
        length === heads
          ? " It looks like [B, L, heads, headDim]: give it as 3-D [B, L, heads·headDim], with the same data."
          : "";
      fail("heads-mismatch", `${name}: 4-D dims ${shape(dims)} have ${own} heads, but ${option} is ${heads}.${hint}`);
    }
    checkSizes(batch, own, last, dims, name);
    return layoutOf(false, batch, own, length, last);
  }
  if (heads === undefined) {
    return fail(
      "heads-missing",
      `${name}: ${dims.length}-D dims ${shape(dims)} fold the heads into ${last}; give option heads (1 for one head).`,
    );
  }
  if (last % heads !== 0) {
    fail(
      "width-not-divisible",
      `${name}: the last dim of ${shape(dims)} is ${last}, no multiple of ${option} ${heads}.`,
    );
  }
  const batch = dims.length === 3 ? dims[0]! : 1;
  checkSizes(batch, heads, last, dims, name);
  return layoutOf(true, batch, heads, length, last / heads);
}

function checkSizes(batch: number, heads: number, width: number, dims: Dims, name: string): void {
  if (batch < 1 || heads < 1 || width < 1) {
    fail(
      "bad-dims",
      `${name}: dims ${shape(dims)} have a 0; only a length may be 0 (batch, heads and widths are at least 1).`,
    );
  }
}

/** R1 and R11: how q, k and v are read, or what does not fit. */
export function attentionShape(
  q: Dims,
  k: Dims,
  v: Dims,
  options: { heads?: number | undefined; kvHeads?: number | undefined },
): AttentionShape {
  const all = `q ${shape(q)}, k ${shape(k)}, v ${shape(v)}`;
  const rank = q.length;
  for (const [name, dims] of Object.entries({ q, k, v })) {
    checkRank(dims, name);
    if (dims.length !== rank) fail("rank-mismatch", `q, k and v must have one layout, ${LAYOUTS}; received ${all}.`);
  }
  checkSwapped(q, k, v, all);
  const queries = readLayout(q, "q", options.heads, "heads");
  const kvHeads = options.kvHeads ?? (rank === 4 ? undefined : options.heads);
  const keys = readLayout(k, "k", kvHeads, "kvHeads");
  const values = readLayout(v, "v", kvHeads, "kvHeads");

  const differ = (code: ErrorCode, which: string, what: string, ...numbers: number[]) =>
    fail(code, `${which} must have the same ${what}; received ${numbers.join(" and ")}: ${all}.`);
  if (queries.batch !== keys.batch) differ("batch-mismatch", "q and k", "batch", queries.batch, keys.batch);
  if (keys.batch !== values.batch) differ("batch-mismatch", "k and v", "batch", keys.batch, values.batch);
  if (keys.heads !== values.heads) differ("heads-mismatch", "k and v", "heads", keys.heads, values.heads);
  if (keys.length !== values.length) differ("length-mismatch", "k and v", "length", keys.length, values.length);
  checkGroups(queries.heads, keys.heads);
  if (queries.width !== keys.width) {
    const group = (keys.width * keys.heads) / queries.width;
    const grouped = rank < 4 && options.kvHeads === undefined && queries.heads % group === 0;
    const what = grouped ? `headDim (for grouped queries give kvHeads: ${group})` : "headDim";
    differ("head-dim-mismatch", "q and k", what, queries.width, keys.width);
  }
  const geometry = {
    batch: queries.batch,
    heads: queries.heads,
    kvHeads: keys.heads,
    queryLength: queries.length,
    keyLength: keys.length,
    headDim: queries.width,
    valueDim: values.width,
  };
  const output = layoutOf(rank < 4, queries.batch, queries.heads, queries.length, values.width);
  const outputDims = rank === 4 ? [...q.slice(0, 3), values.width] : [...q.slice(0, -1), queries.heads * values.width];
  return { geometry, layouts: { queries, keys, values, output }, outputDims };
}

export function checkGroups(heads: number, kvHeads: number): void {
  if (heads % kvHeads !== 0) {
    fail(
      "kv-heads-not-divisor",
      `heads must be a multiple of kvHeads; received heads ${heads} and kvHeads ${kvHeads}.`,
    );
  }
}

/** Batch and length (3-D), or heads and length (4-D), in exchanged places, where the dims of the three tell it. */
function checkSwapped(q: Dims, k: Dims, v: Dims, all: string): void {
  if (q.length === 3) {
    const batchSecond = q[0] !== k[0] && q[1] === k[1] && k[0] === v[0];
    const crossed = [k, v].some((other) => q[0] !== q[1] && q[0] === other[1] && q[1] === other[0]);
    if (batchSecond || crossed) {
      fail(
        "axes-swapped",
        `The batches differ; batch and length look swapped: 3-D is [B, L, heads·headDim]; received ${all}.`,
      );
    }
  }
  if (q.length === 4 && q[0] === k[0] && q[2] === k[2] && q[1]! % k[1]! !== 0 && k[1] === v[1]) {
    fail(
      "axes-swapped",
      `Heads and length look swapped: 4-D is [B, heads, L, headDim]; received ${all}. [B, L, heads, headDim] is 3-D [B, L, heads·headDim] with the same data.`,
    );
  }
}

export const rawView = (address: number, layout?: Layout): RawView => ({
  data: address,
  batchStride: layout?.batchStride ?? 0,
  headStride: layout?.headStride ?? 0,
  rowStride: layout?.rowStride ?? 0,
});
