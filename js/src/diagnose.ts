import { ATTENTION_OPTIONS, attention, readOperands } from "./attention.js";
import { positionalOption, readScores } from "./call.js";
import { headFindings } from "./diagnose-heads.js";
import {
  biasFindings,
  blindFinding,
  brokenFinding,
  clean,
  type Fault,
  faultFinding,
  isHiding,
} from "./diagnose-inputs.js";
import { HIDING, maskFindings, type Slice } from "./diagnose-mask.js";
import { type BiasValues, placeOf, RowStatistics, type Sizes } from "./diagnose-rows.js";
import { count, percent } from "./diagnose-text.js";
import type { Diagnosis, Finding } from "./diagnose-types.js";
import type { Heap } from "./heap.js";
import { readOptions } from "./options.js";
import { type Operand, product } from "./tensors.js";
import { makeTensor } from "./wasm-tensor.js";

// Asks lb.attention itself for the masked scores, slice of rows by slice, so that whatever its options do is seen as it is; everything
// else is read from these scores and from the mask and bias that were given.

/** Scores of one slice: 4 MB. */
const SLICE_CELLS = 2 ** 20;
/** Scores looked at in all, about a second's work; of more, slices spread evenly are taken. */
const MAX_CELLS = 2 ** 25;

const GRAVITY = { error: 0, warning: 1, info: 2 };

/** Data in rows (the last dim but one), in its own array type. */
interface Rows<Data = Float32Array | Uint8Array> {
  readonly data: Data;
  readonly dims: readonly number[];
}

export function diagnose(...call: Parameters<typeof diagnosing>): Diagnosis {
  const steps = diagnosing(...call);
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** diagnose() with a look at something else between slices of the rows; yields how much of them is done, 0 … 1. */
export function* diagnosing(
  heap: Heap,
  q: unknown,
  k: unknown,
  v: unknown,
  given: unknown,
): Generator<number, Diagnosis, undefined> {
  heap.raw; // throws where the instance is disposed
  const options = readOptions(given, ATTENTION_OPTIONS, "diagnose");
  const { queries, keys, values, geometry, layouts } = readOperands(heap, q, k, v, options);
  const read = readScores(heap, geometry, options);
  const { cache, mask: bits, bias: added } = read;
  const sizes: Sizes = read.geometry;
  const { batch, queryLength, keyLength } = sizes;
  const mask = bits && { values: bits.bits, strides: bits.strides };
  const bias = added && { values: valuesOf(heap, added), strides: added.strides };
  const first = cache?.firstPosition ?? 0;
  const offsets = cache ? Int32Array.from(cache.lengths, (n) => n - first) : read.offsets;
  const aligned =
    cache || positionalOption(options) || options.queryOffset !== undefined || queryLength === keyLength
      ? offsets
      : undefined;

  const faults: Fault[] = [];
  const cleaned = (name: Fault["name"], { dims, ...operand }: Operand, layout: Fault["layout"]): Rows<Float32Array> => {
    const [data, fault] = clean(name, valuesOf(heap, { dims, ...operand }), layout);
    if (fault) faults.push(fault);
    return { data, dims };
  };
  const cleanQueries = cleaned("q", queries, layouts.queries);
  const cleanKeys = cleaned("k", keys, layouts.keys);
  cleaned("v", values, layouts.values);

  const slices = planSlices(sizes);
  const rows = new RowStatistics(sizes, offsets, bias?.values.some(isHiding) ? bias : undefined);
  const ask = { ...(given as object | undefined), logSumExp: undefined, summary: undefined, out: undefined };
  const look = (queries: unknown, keys: unknown, values: unknown, from: number, to: number, more: object) =>
    rows.add(
      (attention(heap, queries, keys, values, { ...ask, ...more }).weights as Rows<Float32Array>).data,
      from,
      to,
    );
  if (cache) {
    // A call changes its cache, so each has a copy.
    for (const [n, [from, to]] of slices.entries()) {
      yield n / slices.length;
      const copy = cache.clone();
      try {
        const weights = { kind: "masked", queries: [from, to] };
        look(cleanQueries, k && cleanKeys, v, from, to, { cache: copy, weights });
      } finally {
        copy.dispose();
      }
    }
  } else {
    const kept = makeTensor(heap, cleanKeys.data, keys.dims); // copied in once for all slices
    try {
      // One value per key, which the weights do not depend on.
      const width = keys.dims.length === 4 ? 1 : geometry.kvHeads;
      const ones = {
        data: new Float32Array(batch * keyLength * geometry.kvHeads),
        dims: [...keys.dims.slice(0, -1), width],
      };
      for (const [n, [from, to]] of slices.entries()) {
        yield n / slices.length;
        look(sliceRows(cleanQueries, from, to), kept, ones, from, to, {
          queryOffset: offsets.map((offset) => offset + from),
          mask: bits && sliceRows({ data: bits.bits, dims: bits.dims }, from, to),
          bias: bias && sliceRows({ data: bias.values, dims: added!.dims }, from, to),
          weights: "masked",
        });
      }
    } finally {
      kept.dispose();
    }
  }

  const futureWeight = rows.futureWeight.reduce((most, weight) => Math.max(most, weight), 0);
  const findings: Finding[] = [
    ...faults.map((fault) => faultFinding(fault, rows, sizes, (b) => (cache ? offsets[b]! : 0))),
    ...brokenFinding(rows, bias),
    ...blindFinding(rows, sizes, aligned),
    ...lookAtMask(mask, bias, { ...sizes, slices, offsets: aligned, futureWeight }),
    ...(bias ? biasFindings(bias.values, rows, sizes) : []),
    ...headFindings(rows, sizes, { given: options.scale, headDim: geometry.headDim }),
  ];
  return makeDiagnosis(findings, sizes, slices, aligned && futureWeight);
}

const valuesOf = (heap: Heap, { source, dims }: Operand): Float32Array =>
  "heap" in source ? heap.read(source, product(dims)) : (source as unknown as Float32Array);

/** All rows in slices of bounded size, or as many of these slices as are worth the time. */
function planSlices({ batch, heads, queryLength, keyLength }: Sizes): Slice[] {
  const cells = Math.max(1, batch * heads * keyLength);
  const rows = Math.max(1, Math.floor(SLICE_CELLS / cells));
  const all = Math.ceil(queryLength / rows);
  const taken = Math.min(all, Math.max(2, Math.floor(MAX_CELLS / (rows * cells))));
  return Array.from({ length: taken }, (_, n) => {
    const from = rows * Math.round((n * (all - 1)) / Math.max(1, taken - 1));
    return [from, Math.min(queryLength, from + rows)];
  });
}

function sliceRows({ data, dims }: Rows, from: number, to: number): Rows {
  const [rows, width] = [dims.at(-2) ?? 1, dims.at(-1) ?? 1];
  if (rows === 1 || to - from === rows) return { data, dims };
  const lead = dims.slice(0, -2);
  const part = new (data.constructor as Float32ArrayConstructor)(product(lead) * (to - from) * width);
  for (let n = 0; n < product(lead); n++) {
    part.set(data.subarray((n * rows + from) * width, (n * rows + to) * width), n * (to - from) * width);
  }
  return { data: part, dims: [...lead, to - from, width] };
}

/** The pattern of mask and bias by themselves, once for every batch row and head that has its own. */
function lookAtMask(
  mask: BiasValues | undefined,
  bias: BiasValues | undefined,
  given: Omit<Parameters<typeof maskFindings>[0], "name" | "open">,
): Finding[] {
  const differs = (axis: number) => [mask, bias].some((part) => part?.strides[axis]);
  if (!differs(2)) return []; // the same for every row: padding
  const { offsets } = given;
  return maskFindings({
    ...given,
    batch: differs(0) || offsets?.some((offset) => offset !== offsets[0]) ? given.batch : 1,
    heads: differs(1) ? given.heads : 1,
    name: mask && bias ? "mask and bias" : mask ? "mask" : "bias",
    open: (b, h, i, j) =>
      !(mask && mask.values[placeOf(mask.strides, b, h, i, j)] !== 1) &&
      !(bias && bias.values[placeOf(bias.strides, b, h, i, j)]! <= HIDING),
  });
}

/** An array that also knows what was looked at and how to be read; neither shows up among its elements. */
function makeDiagnosis(
  findings: Finding[],
  { batch, heads, queryLength, keyLength }: Sizes,
  slices: readonly Slice[],
  futureWeight: number | undefined,
): Diagnosis {
  findings.sort((a, b) => GRAVITY[a.severity] - GRAVITY[b.severity]);
  const rows = slices.reduce((sum, [from, to]) => sum + to - from, 0);
  const examined = { batch, heads, queryLength, keyLength, rows, ...(futureWeight !== undefined && { futureWeight }) };
  const told = [
    `${findings.length === 0 ? "Nothing wrong found" : count(findings.length, "finding")} in ${count(batch, "batch row")}, ${count(heads, "head")}, ` +
      `${queryLength} × ${keyLength} scores${rows < queryLength ? `, of which ${count(rows, "row")} were looked at` : ""}` +
      `${futureWeight ? `; rows give up to ${percent(futureWeight)} of their weight to later keys` : ""}.`,
    ...findings.map(({ severity, code, message }) => `${severity} ${code}: ${message}`),
  ].join("\n");
  return Object.defineProperties(findings, {
    examined: { value: Object.freeze(examined) },
    toString: { value: () => told },
  }) as unknown as Diagnosis;
}
