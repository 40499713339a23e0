import { ATTENTION_OPTIONS, attention } from "./attention.js";
import { scoreStrides } from "./broadcast.js";
import { positionalOption } from "./call.js";
import { headFindings } from "./diagnose-heads.js";
import { biasFacts, biasFindings, blindFinding, brokenFinding, clean, faultFinding } from "./diagnose-inputs.js";
import { HIDING, maskFindings, type Open, type Slice } from "./diagnose-mask.js";
import { type BiasValues, placeOf, RowStatistics, type Sizes } from "./diagnose-rows.js";
import { byGravity, count, percent } from "./diagnose-text.js";
import type { Diagnosis, Finding } from "./diagnose-types.js";
import type { Block, Heap, Source } from "./heap.js";
import { readKeyLengths } from "./keys.js";
import { readMask } from "./mask.js";
import { queryOffsets } from "./offset.js";
import { readOptions } from "./options.js";
import { attentionShape } from "./shapes.js";
import { type Operand, product, readFloats } from "./tensors.js";
import { makeTensor } from "./wasm-tensor.js";

// Asks lb.attention itself for the masked scores, slice of rows by slice, so that whatever its options do is seen as it is; everything
// else is read from these scores and from the mask and bias that were given.

/** Scores of one slice: 4 MB. */
const SLICE_CELLS = 2 ** 20;
/** Scores looked at in all, about a second's work; of more, slices spread evenly are taken. */
const MAX_CELLS = 2 ** 25;

const { cache: _, ...DIAGNOSE_OPTIONS } = ATTENTION_OPTIONS; // a call with a cache changes it

/** Rows of the query, mask or bias: the last dim but one, in one array type with the original. */
interface Rows<Data> {
  readonly data: Data;
  readonly dims: readonly number[];
}

export function diagnose(heap: Heap, q: unknown, k: unknown, v: unknown, given: unknown): Diagnosis {
  heap.raw; // throws where the instance is disposed
  const options = readOptions(given, DIAGNOSE_OPTIONS, "diagnose");
  const operands = [readFloats(q, "q", heap), readFloats(k, "k", heap), readFloats(v, "v", heap)] as const;
  const [qDims, kDims, vDims] = operands.map(({ dims }) => dims) as [readonly number[], readonly number[], number[]];
  const { geometry, layouts } = attentionShape(qDims, kDims, vDims, options);
  const { batch, heads, queryLength, keyLength } = geometry;
  const sizes: Sizes = { batch, heads, queryLength, keyLength };
  const scoreDims = [batch, heads, queryLength, keyLength] as const;

  const maskBits = options.mask === undefined ? undefined : readMask(options.mask, "mask");
  const mask = maskBits && { values: maskBits.bits, strides: scoreStrides(maskBits.dims, scoreDims, "mask") };
  const added = options.bias === undefined ? undefined : readFloats(options.bias, "bias", heap, "bias-is-mask");
  const addedValues = added && valuesOf(heap, added);
  const bias = added && { values: addedValues!, strides: scoreStrides(added.dims, scoreDims, "bias") };
  const facts = bias && biasFacts(bias.values);
  const positional = positionalOption(options);
  const lengths = options.keyLengths === undefined ? undefined : readKeyLengths(options.keyLengths, batch, keyLength);
  const offsets = queryOffsets(options.queryOffset, positional, sizes, lengths);
  const aligned =
    positional !== undefined || options.queryOffset !== undefined || queryLength === keyLength ? offsets : undefined;

  const [queries, queryFault] = clean("q", valuesOf(heap, operands[0]), layouts.queries);
  const [keys, keyFault] = clean("k", valuesOf(heap, operands[1]), layouts.keys);
  const [, valueFault] = clean("v", valuesOf(heap, operands[2]), layouts.values);
  const slices = planSlices(sizes);
  const rows = new RowStatistics(sizes, offsets, facts && facts.large > 0 ? bias : undefined);
  const run = (keyTensor: unknown) => {
    // One value per key: the weights do not depend on them.
    const width = kDims.length === 4 ? 1 : geometry.kvHeads;
    const values = {
      data: new Float32Array(batch * keyLength * geometry.kvHeads),
      dims: [...kDims.slice(0, -1), width],
    };
    for (const [from, to] of slices) {
      const part = <Data extends Source>(data: Data, dims: readonly number[]) => sliceRows({ data, dims }, from, to);
      const result = attention(heap, part(queries, qDims), keyTensor, values, {
        ...(given as object | undefined),
        queryOffset: offsets.map((offset) => offset + from),
        mask: maskBits && part(maskBits.bits, maskBits.dims),
        bias: added && part(addedValues!, added.dims),
        weights: "masked",
        logSumExp: undefined,
        summary: undefined,
        out: undefined,
      });
      rows.add((result.weights as { data: Float32Array }).data, from, to);
    }
  };
  if (slices.length === 1) run({ data: keys, dims: kDims });
  else {
    const kept = makeTensor(heap, keys, kDims); // copied in once for all slices
    try {
      run(kept);
    } finally {
      kept.dispose();
    }
  }

  const findings: Finding[] = [queryFault, keyFault, valueFault].flatMap((fault) =>
    fault ? [faultFinding(fault, rows, sizes, () => 0)] : [],
  );
  findings.push(...brokenFinding(rows, bias), ...blindFinding(rows, sizes, aligned));
  const causal = options.causal === true; // shuts every leak, but helps no inverted mask
  const patterns = lookAtMask(mask, bias, rows, sizes, slices, aligned);
  findings.push(...patterns.filter(({ code }) => !(causal && code === "future-leak")));
  if (facts) findings.push(...biasFindings(facts, bias!.values.length, rows, sizes));
  const scale = options.scale ?? 1 / Math.sqrt(geometry.headDim);
  const scaleFacts = { scale, headDim: geometry.headDim, given: options.scale !== undefined };
  findings.push(...headFindings(rows, sizes, scaleFacts));
  return makeDiagnosis(findings, rows, sizes, slices, aligned !== undefined);
}

const valuesOf = (heap: Heap, { source, dims }: Operand): Float32Array =>
  "heap" in source ? heap.read(source as Block, product(dims)) : (source as unknown as Float32Array);

/** All rows in slices of bounded size, or as many of these slices as are worth the time. */
function planSlices({ batch, heads, queryLength, keyLength }: Sizes): Slice[] {
  const cells = Math.max(1, batch * heads * keyLength);
  const rows = Math.max(1, Math.floor(SLICE_CELLS / cells));
  const all = Math.ceil(queryLength / rows);
  const taken = Math.min(all, Math.max(2, Math.floor(MAX_CELLS / (rows * cells))));
  return Array.from({ length: taken }, (_, n) => {
    const from = rows * (taken === 1 ? 0 : Math.round((n * (all - 1)) / (taken - 1)));
    return [from, Math.min(queryLength, from + rows)];
  });
}

function sliceRows<Data extends Source>({ data, dims }: Rows<Data>, from: number, to: number): Rows<Data> {
  const [rows, width] = [dims.at(-2) ?? 1, dims.at(-1) ?? 1];
  if (rows === 1 || (from === 0 && to === rows)) return { data, dims };
  const lead = product(dims.slice(0, -2));
  const source = data as unknown as Float32Array;
  const part = new (source.constructor as Float32ArrayConstructor)(lead * (to - from) * width);
  for (let n = 0; n < lead; n++) {
    part.set(source.subarray((n * rows + from) * width, (n * rows + to) * width), n * (to - from) * width);
  }
  return { data: part as unknown as Data, dims: [...dims.slice(0, -2), to - from, width] };
}

/** The pattern of mask and bias by themselves, once for every batch row and head that has its own. */
function lookAtMask(
  mask: BiasValues | undefined,
  bias: BiasValues | undefined,
  rows: RowStatistics,
  { batch, heads, queryLength, keyLength }: Sizes,
  slices: readonly Slice[],
  offsets: Int32Array | undefined,
): Finding[] {
  const given = [mask, bias].filter((part) => part !== undefined);
  // A pattern that is the same for every row is padding.
  if (!given.some(({ strides }) => strides[2] !== 0)) return [];
  const open: Open = (b, h, i, j) =>
    (!mask || mask.values[placeOf(mask.strides, b, h, i, j)] === 1) &&
    !(bias && bias.values[placeOf(bias.strides, b, h, i, j)]! <= HIDING);
  const own = (axis: number, size: number, differ = false) =>
    Array.from({ length: differ || given.some(({ strides }) => strides[axis] !== 0) ? size : 1 }, (_, n) => n);
  const differ = offsets?.some((offset) => offset !== offsets[0]);
  const [batches, headList] = [own(0, batch, differ), own(1, heads)];
  const name = mask && bias ? "mask and bias" : mask ? "mask" : "bias";
  const all = (list: readonly number[], some: readonly number[], size: number) =>
    list.length > 1 ? some : Array.from({ length: size }, (_, n) => n);
  return maskFindings(
    { open, batches, heads: headList, slices, queryLength, keyLength, offsets, name },
    (inBatches, inHeads) =>
      Math.max(
        ...all(batches, inBatches, batch).flatMap((b) =>
          all(headList, inHeads, heads).map((h) => rows.futureWeight[b * heads + h]!),
        ),
      ),
  );
}

/** An array that also knows what was looked at and how to be read; neither shows up among its elements. */
function makeDiagnosis(
  findings: Finding[],
  rows: RowStatistics,
  sizes: Sizes,
  slices: readonly Slice[],
  aligned: boolean,
): Diagnosis {
  findings.sort(byGravity);
  const looked = slices.reduce((total, [from, to]) => total + to - from, 0);
  const futureWeight = rows.futureWeight.reduce((most, weight) => Math.max(most, weight), 0);
  const examined = Object.freeze({ ...sizes, rows: looked, ...(aligned && { futureWeight }) });
  const { batch, heads, queryLength, keyLength } = sizes;
  const sampled = looked < queryLength ? `, of which ${count(looked, "row")} were looked at` : "";
  const future =
    aligned && futureWeight > 0 ? `; rows give up to ${percent(futureWeight)} of their weight to later keys` : "";
  const told = [
    `${findings.length === 0 ? "Nothing wrong found" : count(findings.length, "finding")} in ${count(batch, "batch row")}, ${count(heads, "head")}, ` +
      `${queryLength} × ${keyLength} scores${sampled}${future}.`,
    ...findings.map(({ severity, code, message }) => `${severity} ${code}: ${message}`),
  ].join("\n");
  return Object.defineProperties(findings, {
    examined: { value: examined },
    toString: { value: () => told },
  }) as unknown as Diagnosis;
}
