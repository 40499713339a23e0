/** Queries, keys and values behind the weights, head by head. */
import type { HeadVectors, Rows } from "./data.js";
import { type Block, isTensor, readNested, readTensor, refuse, show } from "./numbers.js";

interface Sizes {
  readonly layers: number;
  readonly heads: number;
  readonly queryLength: number;
  readonly keyLength: number;
  readonly batch: number;
}

interface Given {
  readonly q?: unknown;
  readonly k?: unknown;
  readonly v?: unknown;
  readonly scale?: number;
}

type RowsOf = (layer: number, head: number) => Rows;

export function readVectors(
  given: Given,
  sizes: Sizes,
): ((layer: number, head: number) => HeadVectors | null) | undefined {
  const { q, k, v, scale } = given;
  if (q === undefined && k === undefined && v === undefined) return undefined;
  if ((q === undefined) !== (k === undefined))
    refuse(`q and k belong together; ${q === undefined ? "q" : "k"} is missing.`);
  if (scale !== undefined && !Number.isFinite(scale)) refuse(`scale must be a finite number; received ${show(scale)}.`);
  const queries = q === undefined ? undefined : readRows(q, "q", sizes.queryLength, sizes);
  const keys = k === undefined ? undefined : readRows(k, "k", sizes.keyLength, sizes);
  const values = v === undefined ? undefined : readRows(v, "v", sizes.keyLength, sizes);
  if (queries && keys && queries(0, 0).width !== keys(0, 0).width)
    refuse(`q and k must be equally wide per head; received ${queries(0, 0).width} and ${keys(0, 0).width}.`);
  return (layer, head) => {
    const own = queries?.(layer, head);
    return {
      queries: own,
      keys: keys?.(layer, head),
      values: values?.(layer, head),
      scale: scale ?? 1 / Math.sqrt(own?.width ?? 1),
    };
  };
}

function readRows(given: unknown, where: string, length: number, sizes: Sizes): RowsOf {
  const perLayer = Array.isArray(given) && isTensor(given[0]);
  if (!perLayer) {
    if (sizes.layers > 1)
      refuse(`${where} must be a list of ${sizes.layers} tensors, one per layer; received ${show(given)}.`);
    const rows = rowsOfLayer(given, where, length, sizes);
    return (_, head) => rows(head);
  }
  const list = given as unknown[];
  if (list.length !== sizes.layers)
    refuse(`${where} must be a list of ${sizes.layers} tensors, one per layer; received ${list.length}.`);
  const layers = list.map((layer, index) => rowsOfLayer(layer, `${where}[${index}]`, length, sizes));
  return (layer, head) => layers[layer]!(head);
}

function rowsOfLayer(given: unknown, where: string, length: number, sizes: Sizes): (head: number) => Rows {
  const block = isTensor(given) ? readTensor(given, where) : readNested(given, where);
  const { dims } = block;
  const shape = `[${dims.join(", ")}]`;
  const wrong = (): never =>
    refuse(
      `${where} must be [batch, heads, ${length}, width], [heads, ${length}, width] or [${length}, heads · width]; received ${shape}.`,
    );
  if (dims.length < 2 || dims.length > 4 || dims.at(-2) !== length) return wrong();
  const width = dims.at(-1) ?? 0;
  const side = dims.at(-3) ?? 1;
  // With three dims the first is a batch where it cannot be heads.
  const folded = dims.length === 2 || (dims.length === 3 && side !== sizes.heads && sizes.heads % side !== 0);
  const flat = dims.length === 3 && side === 1 && sizes.heads > 1;
  if (folded || flat) return foldedRows(block, where, length, width, sizes);
  if (sizes.heads % side !== 0) return wrong();
  const rows = dims.length === 4 ? dims[0]! : 1;
  if (sizes.batch >= rows) refuse(`batch ${sizes.batch} does not exist in ${where} ${shape}.`);
  return (head) => {
    // Grouped queries: several heads share one of keys and values.
    const own = Math.floor((head * side) / sizes.heads);
    const at = (sizes.batch * side + own) * length * width;
    return { width, data: block.slice(at, at + length * width) };
  };
}

/** [L, heads · width]: a head's columns are taken out of each row. */
function foldedRows(block: Block, where: string, length: number, all: number, sizes: Sizes): (head: number) => Rows {
  const { heads } = sizes;
  if (all % heads !== 0) refuse(`${where} has rows of ${all} numbers, which ${heads} heads do not divide.`);
  const width = all / heads;
  const batchAt = block.dims.length === 3 ? sizes.batch * length * all : 0;
  return (head) => {
    const data = new Float32Array(length * width);
    const source = block.slice(batchAt, batchAt + length * all);
    for (let row = 0; row < length; row++)
      data.set(source.subarray(row * all + head * width, row * all + (head + 1) * width), row * width);
    return { width, data };
  };
}
