import { HIDING } from "./diagnose-mask.js";
import { type BiasValues, MASKED, placeOf, type RowStatistics, Sight, type Sizes } from "./diagnose-rows.js";
import { brief, count, places, where } from "./diagnose-text.js";
import type { Finding } from "./diagnose-types.js";
import type { Layout } from "./shapes.js";

// What is wrong with the operands themselves, and with the rows that see nothing.

/** Non-finite values of q, k or v. */
export interface Fault {
  readonly name: "q" | "k" | "v";
  readonly layout: Layout;
  /** The first of them, as a message shows it, and their number. */
  readonly first: string;
  readonly values: number;
  /** [B, heads, L]: positions that hold such values. */
  readonly at: Uint8Array;
}

/** The values with 0 in place of all that is not finite, so that scores say what is visible; and what was replaced. */
export function clean(name: Fault["name"], values: Float32Array, layout: Layout): [Float32Array, Fault | undefined] {
  const finite = Number.isFinite; // looked up once: see diagnose-rows.ts
  const { batch, heads, length, width } = layout;
  const at = new Uint8Array(batch * heads * length);
  let found = 0;
  let first = "";
  let copy = values;
  for (let place = 0; place < at.length; place++) {
    const [b, h, i] = [Math.floor(place / length / heads), Math.floor(place / length) % heads, place % length];
    const start = b * layout.batchStride + h * layout.headStride + i * layout.rowStride;
    for (let d = 0; d < width; d++) {
      const value = values[start + d]!;
      if (finite(value)) continue;
      if (found++ === 0) {
        first = `${value} at batch row ${b}, head ${h}, position ${i}, dim ${d}`;
        copy = values.slice();
      }
      copy[start + d] = 0;
      at[place] = 1;
    }
  }
  return [copy, found > 0 ? { name, layout, first, values: found, at } : undefined];
}

/** `firstKey`: the column of the first new key, per batch row. */
export function faultFinding(
  { name, layout, first, at, values }: Fault,
  rows: RowStatistics,
  { heads, keyLength }: Sizes,
  firstKey: (batch: number) => number,
): Finding {
  const { batch, heads: own, length } = layout;
  const ofQueries = name === "q";
  const axis = ofQueries ? "rows" : "keys";
  const concerned = where([batch, own, length], axis, (place) => at[place]);
  const { n: visible } = where([batch, heads, length], axis, (place, b, h, i) => {
    if (!at[(b * own + Math.floor((h * own) / heads)) * length + i]) return false;
    return ofQueries
      ? rows.sights[place]! >= Sight.something
      : rows.seenKeys[(b * heads + h) * keyLength + firstKey(b) + i];
  });
  const effect =
    visible === 0
      ? "None of them is visible, so they change nothing."
      : `They spoil ${ofQueries ? "these rows" : "every row that sees them"}: find the overflow, division by 0 or unwritten memory that they come from` +
        `${ofQueries ? "" : ", or mask these keys"}.`;
  return {
    code: "non-finite",
    severity: visible > 0 ? "error" : "info",
    message: `${name} holds ${count(values, "value")} that ${values === 1 ? "is" : "are"} NaN or ±∞${places(concerned.at)}, first ${first}. ${effect}`,
    ...concerned.at,
    numbers: { values, places: concerned.n, visible },
  };
}

/** Scores that are NaN or +∞ although q and k (as they were cleaned) are finite. */
export function brokenFinding({ broken, firstBroken }: RowStatistics, bias: BiasValues | undefined): Finding[] {
  if (!firstBroken) return [];
  const [b, h, i, j] = firstBroken;
  const added = bias?.values[placeOf(bias.strides, b, h, i, j)] ?? 0;
  const cause = Number.isFinite(added)
    ? "q·k leaves float32 there: normalise q and k."
    : `The bias is ${added} there: mend it.`;
  const at = { batches: [b], heads: [h], rows: [i], keys: [j] };
  const message = `${count(broken, "visible score")} NaN or +∞, the first${places(at)}. ${cause}`;
  return [{ code: "non-finite", severity: "error", message, ...at, numbers: { scores: broken } }];
}

export const isHiding = (value: number): boolean => value <= HIDING && value > MASKED;

export function biasFindings(values: Float32Array, rows: RowStatistics, sizes: Sizes): Finding[] {
  const { length } = values;
  const large = values.filter(isHiding);
  if (large.length > 0) {
    const lowest = large.reduce((low, value) => Math.min(low, value));
    const { n, at } = where(
      [sizes.batch, sizes.heads, sizes.queryLength],
      "rows",
      (row) => rows.sights[row] === Sight.hidden,
    );
    const message =
      `The bias holds large finite negatives, down to ${brief(lowest)}, at ${large.length} of ${count(length, "place")}: it looks like a mask.` +
      `${n > 0 ? ` They hide nothing in ${count(n, "row")}${places(at)} that have them at every key: there comes a mean of the values, where a mask gives 0.` : ""} ` +
      "Give option mask (1 = may attend), or −Infinity in their place.";
    const numbers = { values: large.length, lowest, rows: n };
    return [{ code: "bias-is-mask", severity: "warning", message, ...(n > 0 && at), numbers }];
  }
  const ones = values.reduce((sum, value) => (value === 1 ? sum + 1 : value === 0 ? sum : Number.NaN), 0);
  if (!(ones > 0 && ones < length)) return [];
  const message =
    "The bias holds 0 and 1 only, which hide nothing: it looks like a mask. Give it as option mask: { data: Uint8Array.from(data), dims }, 1 = may attend.";
  return [{ code: "bias-zero-one", severity: "warning", message, numbers: { values: length } }];
}

/**
 * Rows to which nothing is visible. A row of padding is none of them: its own key, at its own position, is seen by nobody, while other rows
 * of its batch row see something. `offsets` is undefined where positions are unknown.
 */
export function blindFinding(rows: RowStatistics, sizes: Sizes, offsets: ArrayLike<number> | undefined): Finding[] {
  const { batch, heads, queryLength, keyLength } = sizes;
  const seen = new Uint8Array(batch * keyLength);
  where([batch, heads, keyLength], "keys", (at, b, _h, j) => {
    seen[b * keyLength + j]! |= rows.seenKeys[at]!;
  });
  const isPadding = (b: number, i: number) => {
    const keys = seen.subarray(b * keyLength, (b + 1) * keyLength);
    return offsets !== undefined && keys[i + offsets[b]!] === 0 && keys.includes(1);
  };
  const { n, at } = where(
    [batch, heads, queryLength],
    "rows",
    (row, b, _h, i) => rows.sights[row] === Sight.nothing && !isPadding(b, i),
  );
  if (n === 0) return [];
  const examined = rows.sights.filter((sight) => sight !== Sight.unknown).length;
  const all = n === examined;
  const early = offsets && at.rows![0]! + Math.min(...Array.from(offsets)) < 0;
  const advice = all
    ? "The restrictions exclude one another, or a mask is inverted (1 = may attend)."
    : `${early ? "Rows before key 0 do (row + queryOffset < 0): check queryOffset." : "Let them see a key (their own, say), unless they are padding."}`;
  const message = `${n} of ${count(examined, "row")}${places(at)} see no key at all, so their output is 0. ${advice}`;
  return [
    { code: "rows-see-nothing", severity: all ? "error" : "warning", message, ...at, numbers: { rows: n, examined } },
  ];
}
