import { fail, kindOf, refuse, shape } from "./errors.js";
import { type At, type Heap, Job, type Place, type Source } from "./heap.js";
import { readIntegers } from "./lists.js";
import type { RawRotary } from "./module.js";
import { LIMIT } from "./offset.js";
import {
  finite,
  flag,
  later,
  type OptionTable,
  oneOf,
  positive,
  positiveInteger,
  readOptions,
  required,
} from "./options.js";
import { planResults } from "./results.js";
import type { RotaryEmbedding } from "./rotary-types.js";
import { rawView, readLayout } from "./shapes.js";
import { readFloats, readValues } from "./tensors.js";
import type { Tensor, WasmTensor } from "./types.js";

const FACTOR = { type: later<string>(), factor: positive };
const BY_LENGTH = { ...FACTOR, originalLength: positive };
/** Options of each kind of scaling, in the order of the core's enum. */
const SCALINGS: Record<string, OptionTable> = {
  linear: FACTOR,
  ntk: FACTOR,
  llama3: { ...BY_LENGTH, lowFrequencyFactor: positive, highFrequencyFactor: positive },
  yarn: { ...BY_LENGTH, betaFast: positive, betaSlow: positive, attentionFactor: positive },
};
const TYPES = Object.keys(SCALINGS);
const readType = oneOf(...TYPES);

/** The options of RotaryEmbedding. */
const EMBEDDING = { dims: positiveInteger, base: finite, interleaved: flag, scaling: readScaling };
const TABLES = { cos: later<unknown>(), sin: later<unknown>() };
const ROTARY = {
  ...EMBEDDING,
  heads: positiveInteger,
  positions: later<unknown>(),
  offset: later<unknown>(),
  ...TABLES,
  out: later<unknown>(),
};
type Scaling = Omit<RawRotary, "dims" | "interleaved" | "base">;

const NO_SCALING: Scaling = {
  scaling: 0,
  factor: 1,
  originalLength: 0,
  lowFrequencyFactor: 1,
  highFrequencyFactor: 4,
  betaFast: 32,
  betaSlow: 1,
  attentionFactor: 0,
};

function readScaling(value: unknown, where: string): Scaling {
  if (kindOf(value) !== "Object") refuse("bad-option", where, "{ type, factor, … }", value);
  const type = readType((value as { type?: unknown }).type, `${where}.type`);
  const byLength = type === "llama3" || type === "yarn";
  const given = readOptions(value, SCALINGS[type]!, where) as Partial<Scaling> & { type: string };
  const needed = byLength ? (["factor", "originalLength"] as const) : (["factor"] as const);
  const { type: _, ...numbers } = required(given, needed, `${where} of type ${type}`);
  const scaling = { ...NO_SCALING, ...numbers, scaling: TYPES.indexOf(type) + 1 };
  const { lowFrequencyFactor: low, highFrequencyFactor: high } = scaling;
  if (low >= high) fail("bad-option", `${where}: lowFrequencyFactor ${low} must be below highFrequencyFactor ${high}.`);
  return scaling;
}

/** Nothing is turned. */
export const NO_ROTARY: RawRotary = { dims: 0, interleaved: false, base: 10000, ...NO_SCALING };

/** A layer's option: the core's record for heads of `headDim`. */
export const readEmbedding = (given: RotaryEmbedding, headDim: number, where: string): RawRotary =>
  embedding(readOptions(given, EMBEDDING, where), headDim, where);

function embedding(
  { dims, base, interleaved, scaling }: { dims?: number; base?: number; interleaved?: boolean; scaling?: Scaling },
  headDim: number,
  where: string,
): RawRotary {
  const turned = dims ?? headDim;
  if (turned % 2 !== 0 || turned > headDim)
    refuse("bad-option", `${where}: dims`, `even and at most ${headDim} (headDim)`, turned);
  if (base !== undefined && base <= 1) refuse("bad-option", `${where}: base`, "a number > 1", base);
  return { dims: turned, interleaved: interleaved === true, base: base ?? 10000, ...(scaling ?? NO_SCALING) };
}

/** Positions of every slot: [L] for all rows, or [B, L]. */
export function readPositions(positions: unknown, offset: unknown, batch: number, length: number): Int32Array {
  if (positions !== undefined) {
    if (offset !== undefined) fail("bad-option", "positions say everything: leave offset out.");
    const each = "one per slot ([L] or [B, L])";
    return readIntegers(positions, "positions", each, [length, batch * length], [-LIMIT, LIMIT]);
  }
  const starts = typeof offset === "number" || offset === undefined ? [offset ?? 0] : offset;
  const list = readIntegers(starts, "offset", "one for all or one per batch row", [1, batch], [-LIMIT, LIMIT]);
  return Int32Array.from({ length: list.length * length }, (_, at) => list[Math.floor(at / length)]! + (at % length));
}

/** lb.rotary: turns the rows of x [B, heads, L, D], [B, L, heads·D] or [L, heads·D]. */
export function rotary(heap: Heap, x: unknown, given: unknown): Tensor | WasmTensor {
  heap.raw; // throws where the instance is disposed
  const { heads, positions, offset, cos, sin, out, ...rest } = readOptions(given, ROTARY, "rotary");
  const operand = readFloats(x, "x", heap);
  const layout = readLayout(operand.dims, "x", heads, "heads");
  const { batch, length, width } = layout;
  const tables = cos === undefined && sin === undefined ? undefined : readTables(cos, sin, rest, [batch, length]);
  if (tables?.perSlot && (positions ?? offset) !== undefined)
    fail("bad-option", "rotary: tables [B, L, dims/2] have a row for every slot: leave positions and offset out.");
  const options = embedding(tables ? { ...rest, dims: 2 * tables.half } : rest, width, "rotary");
  const at = tables?.perSlot ? undefined : readPositions(positions, offset, batch, length);
  const rows = at?.length ?? batch * length;

  const job = new Job(heap, "rotary");
  const source = job.input(operand.source);
  const half = options.dims / 2;
  const place = (table: Source | undefined): Place =>
    table ? job.input(at ? gather(table, at, half) : table) : job.room(rows * half * 4);
  const [cosines, sines, frequencies] = [place(tables?.cos), place(tables?.sin), job.room(half * 8)];
  const computed = at && !tables ? job.input(at) : undefined;
  const { output } = planResults(job, heap, { output: operand.dims }, out);
  job.run(undefined, (raw, at: At) =>
    raw.rotary({
      options,
      input: rawView(at(source), layout),
      output: rawView(at(output!.output.place), layout),
      batch,
      heads: layout.heads,
      length,
      width,
      positions: at(computed),
      tableRows: rows,
      tableBatchRows: rows === length ? 0 : length,
      cosines: at(cosines),
      sines: at(sines),
      frequencies: at(frequencies),
    }),
  );
  return output!.tensor();
}

/** Given tables after their checks. */
function readTables(
  cos: unknown,
  sin: unknown,
  { dims, base, scaling }: { dims?: number; base?: number; scaling?: unknown },
  [batch, length]: readonly [number, number],
) {
  if (cos === undefined || sin === undefined) fail("bad-option", "rotary: give both cos and sin, or neither.");
  if (base !== undefined || scaling !== undefined)
    fail("bad-option", "rotary: cos and sin are tables already: leave base and scaling out.");
  const [cosines, sines] = [readValues(cos, "cos"), readValues(sin, "sin")];
  const half = cosines.dims.at(-1) ?? 0;
  const [own, slots] = [shape(cosines.dims), shape([batch, length, half])];
  const received = `cos ${own} and sin ${shape(sines.dims)}`;
  const perSlot = cosines.dims.length === 3 && own === slots;
  if (own !== shape(sines.dims) || !(perSlot || cosines.dims.length === 2) || half < 1) {
    fail(
      "bad-dims",
      `rotary: cos and sin must both be [positions, dims/2] or [B, L, dims/2] = ${slots}; received ${received}.`,
    );
  }
  if (dims !== undefined && dims !== 2 * half)
    fail("bad-option", `rotary: dims is ${dims}, but the tables are for dims ${2 * half}: ${received}.`);
  return { half, perSlot, cos: cosines.source, sin: sines.source };
}

/** The rows of a table [positions, half] that the slots need. */
function gather(table: Source, positions: Int32Array, half: number): Float32Array {
  const known = table.length / half;
  const beyond = positions.find((position) => position < 0 || position >= known);
  if (beyond !== undefined)
    fail("bad-option", `rotary: the tables have positions 0 to ${known - 1}; position ${beyond} is asked for.`);
  return Float32Array.from(
    { length: positions.length * half },
    (_, i) => table[positions[Math.floor(i / half)]! * half + (i % half)]!,
  );
}
