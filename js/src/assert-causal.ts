import type { AssertCausalOptions, CausalReport, SequenceFunction } from "./diagnose-types.js";
import type * as errors from "./errors.js";
import type * as options from "./options.js";
import type * as random from "./random.js";
import type * as tensors from "./tensors.js";

const WHERE = "assertCausal";

/**
 * What is used of other files. It is handed over, once: this file is loaded when it is called for, and if it imported values, bundlers would
 * cut the rest of the package in two, for the half that both load.
 */
export type Tools = Pick<typeof errors, "fail" | "kindOf" | "refuse" | "shape" | "show"> &
  Pick<typeof options, "flag" | "integer" | "notNegative" | "positiveInteger" | "readOptions"> &
  Pick<typeof random, "mulberry32"> &
  Pick<typeof tensors, "product" | "readDims">;
let tools: Tools;
const fail: Tools["fail"] = (...given) => tools.fail(...given);

/**
 * Replaced inputs are this many times as large as the first ones: enough to move a softmax a long way. Much larger ones would put a leaking
 * key either at weight 1 or at a weight of exactly 0, and the latter hides the leak.
 */
const DISTURBANCE = 4;

/** An output as [outer, length, inner], row-major; outer is a multiple of the batch. */
interface Output {
  readonly data: ArrayLike<number>;
  readonly outer: number;
  readonly inner: number;
}

/** Where an output changed though it should not have: `size` is NaN where a NaN appeared. */
interface Change {
  readonly position: number;
  readonly size: number;
}

/** Half-open ranges of positions to be disturbed, one per batch row. */
type Ranges = readonly (readonly [number, number])[];

class Probe {
  calls = 0;
  largest = 0;
  readonly #fn: SequenceFunction;
  readonly #dims: readonly number[];
  readonly #batch: number;
  readonly #length: number;
  readonly #width: number;
  readonly #x: Float32Array;
  readonly #other: Float32Array;
  readonly #tolerance: number;
  #baseline: Output | undefined;

  constructor(fn: SequenceFunction, options: AssertCausalOptions) {
    const { length, width, batch } = options;
    this.#fn = fn;
    this.#batch = batch ?? 1;
    [this.#length, this.#width] = [length, width];
    this.#dims = batch === undefined ? [length, width] : [batch, length, width];
    this.#tolerance = options.tolerance ?? 0;
    const random = tools.mulberry32(options.seed ?? 0);
    const noise = (size: number) =>
      Float32Array.from({ length: tools.product(this.#dims) }, () => size * Math.sqrt(3) * (2 * random() - 1));
    this.#x = noise(1);
    this.#other = options.nan ? new Float32Array(tools.product(this.#dims)).fill(Number.NaN) : noise(DISTURBANCE);
  }

  /** The undisturbed outputs, twice: a function that differs from itself cannot be tested. */
  async start(): Promise<void> {
    const first = await this.#call([]);
    const bad = Array.prototype.findIndex.call(first.data, Number.isNaN);
    if (bad >= 0) {
      fail(
        "bad-values",
        `${WHERE}: fn's output holds NaN (at index ${bad}) for plain random inputs; a NaN would hide any change.`,
      );
    }
    this.#baseline = { ...first, data: Array.prototype.slice.call(first.data) as number[] }; // fn may reuse its array
    const again = await this.#call([]);
    for (let row = 0; row < this.#batch; row++) {
      const change = this.#changeBefore(this.#length, row, again);
      if (!change) continue;
      fail(
        "not-deterministic",
        `${WHERE}: fn gives two outputs for the same input: position ${change.position} differs by ${change.size}. ` +
          "Switch off dropout and sampling, and start every call from the same state (a cache, say).",
      );
    }
  }

  /** Disturbs `ranges`, and looks in each of these batch rows for the first change before its `limits`. */
  async changes(ranges: Ranges, limits: readonly number[]): Promise<(Change | undefined)[]> {
    const output = await this.#call(ranges);
    return limits.map((limit, row) => this.#changeBefore(limit, row, output));
  }

  async #call(ranges: Ranges): Promise<Output> {
    this.calls++;
    const data = this.#x.slice(); // fn may keep or change what it is given
    ranges.forEach(([from, to], row) => {
      const at = (position: number) => (row * this.#length + position) * this.#width;
      data.set(this.#other.subarray(at(from), at(to)), at(from));
    });
    const output = this.#read(await this.#fn({ data, dims: [...this.#dims] }));
    const before = this.#baseline;
    if (before && (output.data.length !== before.data.length || output.inner !== before.inner)) {
      fail(
        "bad-values",
        `${WHERE}: fn returned ${before.data.length} values first and ${output.data.length} values later, for inputs of the same dims.`,
      );
    }
    return output;
  }

  #read(value: unknown): Output {
    const [batch, length] = [this.#batch, this.#length];
    const no = (received: string): never =>
      fail(
        "bad-values",
        `${WHERE}: fn must return a row per position: { data, dims } with dims [${batch === 1 ? "" : "batch, "}length, …], or a Float32Array, for ` +
          `${batch === 1 ? "" : `batch ${batch} and `}length ${length}; received ${received}.`,
      );
    const given = value as { data?: unknown; dims?: unknown } | null | undefined;
    const data = (ArrayBuffer.isView(value) ? value : given?.data) as ArrayLike<number>;
    if (!/^(Float|Int|Uint)\d+Array$/.test(tools.kindOf(data))) {
      const output = given && typeof given === "object" && "output" in given;
      return no(output ? "an object with 'output' (return that)" : tools.show(value));
    }
    if (data === value) {
      const inner = data.length / (batch * length);
      return Number.isInteger(inner) ? { data, outer: batch, inner } : no(`${data.length} values`);
    }
    const dims = tools.readDims(given!.dims, `${WHERE}: fn's output`);
    const alone = dims.at(-2) !== length && dims.at(-1) === length; // a number per position
    const inner = alone ? 1 : dims.at(-1)!;
    const outer = tools.product(dims.slice(0, alone ? -1 : -2));
    const fits = tools.product(dims) === data.length && (alone || dims.at(-2) === length) && outer % batch === 0;
    return fits ? { data, outer, inner } : no(`dims ${tools.shape(dims)} with ${data.length} values`);
  }

  #changeBefore(limit: number, row: number, { data, outer, inner }: Output): Change | undefined {
    const parts = outer / this.#batch;
    for (let position = 0; position < limit; position++) {
      let size = 0;
      for (let part = 0; part < parts; part++) {
        const start = ((row * parts + part) * this.#length + position) * inner;
        for (let at = start; at < start + inner; at++) {
          if (data[at] === this.#baseline!.data[at]) continue; // ∞ − ∞ is no difference
          const change = Math.abs(data[at]! - this.#baseline!.data[at]!);
          size = change <= size || Number.isNaN(size) ? size : change;
        }
      }
      if (!(size <= this.#tolerance)) return { position, size };
      this.largest = Math.max(this.largest, size);
    }
    return undefined;
  }
}

/** Proves by disturbing inputs that the output at position i depends on no input after i, or throws 'not-causal'. */
export async function assertCausal(fn: unknown, given: unknown, handed: Tools): Promise<CausalReport> {
  tools = handed;
  if (typeof fn !== "function") tools.refuse("bad-option", `${WHERE}: fn`, "a function of a sequence", fn);
  const { flag, integer, notNegative, positiveInteger } = tools;
  const table = {
    length: positiveInteger,
    width: positiveInteger,
    batch: positiveInteger,
    tolerance: notNegative,
    probes: positiveInteger,
    nan: flag,
    seed: integer,
  };
  const read = tools.readOptions(given, table, WHERE);
  const { length, width } = read;
  if (length === undefined || width === undefined) {
    return fail("bad-option", `${WHERE} needs { length, width }: the positions, and the numbers at each of them.`);
  }
  const options = { ...read, length, width } as AssertCausalOptions;
  const probe = new Probe(fn as SequenceFunction, options);
  await probe.start();

  const positions = spread(length - 1, options.probes ?? length);
  const batch = options.batch ?? 1;
  for (let at = 0; at < positions.length; at += batch) {
    const tested = positions.slice(at, at + batch);
    const changes = await probe.changes(
      tested.map((from) => [from, length]),
      tested,
    );
    const row = changes.findIndex((change) => change !== undefined);
    if (row >= 0) await report(probe, row, tested[row]!, changes[row]!, options);
  }
  const complete = positions.length === length - 1;
  const { calls, largest } = probe;
  const told =
    `Causal: with the inputs from position j on replaced${options.nan ? " by NaN" : ""}, no output before j changed` +
    `${largest > 0 ? ` by more than ${largest}` : ""}, for ${complete ? "every" : `${positions.length} of ${length - 1}`} j ` +
    `from 1 to ${length - 1} (${calls} calls).`;
  return { positions, complete, calls, largestChange: largest, toString: () => told };
}

/** Up to `count` of 1 … last, evenly. */
function spread(last: number, count: number): number[] {
  if (count >= last) return Array.from({ length: last }, (_, i) => i + 1);
  return Array.from({ length: count }, (_, i) => 1 + Math.round((i * (last - 1)) / Math.max(1, count - 1)));
}

/** Finds the last, then the first of the inputs that it takes, by halving, and throws. */
async function report(
  probe: Probe,
  row: number,
  limit: number,
  change: Change,
  { length, nan, tolerance = 0 }: AssertCausalOptions,
): Promise<never> {
  let found = change;
  const changed = async (from: number, to: number): Promise<boolean> => {
    const ranges = Array.from({ length: row + 1 }, (_, r) => (r === row ? ([from, to] as const) : ([0, 0] as const)));
    const limits = ranges.map((_, r) => (r === row ? limit : 0));
    const seen = (await probe.changes(ranges, limits))[row];
    found = seen ?? found;
    return seen !== undefined;
  };
  let [enough, tooFew] = [length, limit];
  while (enough - tooFew > 1) {
    const middle = (enough + tooFew) >> 1;
    if (await changed(limit, middle)) enough = middle;
    else tooFew = middle;
  }
  const to = enough;
  let [from, tooLate] = [limit, to];
  while (tooLate - from > 1) {
    const middle = (tooLate + from) >> 1;
    if (await changed(middle, to)) from = middle;
    else tooLate = middle;
  }
  const size = Number.isNaN(found.size) ? "becomes NaN" : `changes by ${Number(found.size.toPrecision(3))}`;
  const cause = to - from === 1 ? `input at position ${from} is` : `inputs at positions ${from} to ${to - 1} are`;
  const tiny = tolerance === 0 && found.size < 1e-5;
  return fail(
    "not-causal",
    `${WHERE}: the output at position ${found.position} ${size} when the ${cause} ${nan ? "NaN" : "changed"}: it sees the future. ` +
      "Give every attention causal: true; where it is given, look for an inverted mask, a wrong queryOffset ('start' or 'end'), a finite " +
      "negative bias in place of −∞, and anything that mixes positions (a norm over the length, a centred convolution)." +
      (tiny ? " If that is mere rounding (sums whose order depends on the data), give a tolerance." : ""),
  );
}
