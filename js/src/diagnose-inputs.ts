import { HIDING } from "./diagnose-mask.js";
import type { BiasValues, RowStatistics, Sizes } from "./diagnose-rows.js";
import { MASKED, placeOf, Sight } from "./diagnose-rows.js";
import { brief, count, listed, places } from "./diagnose-text.js";
import type { Finding } from "./diagnose-types.js";
import type { Layout } from "./shapes.js";

// What is wrong with the operands themselves, and with the rows that see nothing.

/** Non-finite values of q, k or v. */
export interface Fault {
  readonly name: "q" | "k" | "v";
  readonly layout: Layout;
  readonly first: { readonly value: number; readonly place: string };
  /** [B, heads, L]: positions that hold such values, and their number. */
  readonly at: Uint8Array;
  readonly values: number;
}

/** The values with 0 in place of all that is not finite, so that scores say what is visible; and what was replaced. */
export function clean(name: Fault["name"], values: Float32Array, layout: Layout): [Float32Array, Fault | undefined] {
  const { batch, heads, length, width } = layout;
  const { isFinite } = Number; // a global looked up once: see diagnose-rows.ts
  let found = 0;
  let first: Fault["first"] | undefined;
  let copy: Float32Array | undefined;
  let at: Uint8Array | undefined;
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < length; i++) {
        const start = b * layout.batchStride + h * layout.headStride + i * layout.rowStride;
        for (let d = 0; d < width; d++) {
          const value = values[start + d]!;
          if (isFinite(value)) continue;
          first ??= { value, place: `batch row ${b}, head ${h}, position ${i}, dim ${d}` };
          copy ??= values.slice();
          copy[start + d] = 0;
          at ??= new Uint8Array(batch * heads * length);
          at[(b * heads + h) * length + i] = 1;
          found++;
        }
      }
    }
  }
  return [copy ?? values, first && { name, layout, first, at: at!, values: found }];
}

/** `firstKey`: the column of the first of these keys, per batch row. */
export function faultFinding(
  { name, layout, first, at, values }: Fault,
  rows: RowStatistics,
  { heads, queryLength, keyLength }: Sizes,
  firstKey: (batch: number) => number,
): Finding {
  const { heads: own, length } = layout;
  const group = heads / own;
  const visible = at.map((flag, place) => {
    if (!flag) return 0;
    const [b, h, i] = [Math.floor(place / length / own), Math.floor(place / length) % own, place % length];
    const heading = b * heads + h * group;
    if (name === "q") return Number(rows.sights[heading * queryLength + i]! >= Sight.something);
    for (let sharing = heading; sharing < heading + group; sharing++) {
      if (rows.seenKeys[sharing * keyLength + firstKey(b) + i]) return 1;
    }
    return 0;
  });
  const reached = listed(visible).length;
  const concerned = listed(at);
  const unique = (of: (place: number) => number) => [...new Set(concerned.map(of))].sort((a, b) => a - b);
  const positions = unique((place) => place % length);
  const effect =
    reached === 0
      ? "None of these places is visible, so they change nothing."
      : `${reached} of ${count(concerned.length, "place")} ${reached === 1 ? "is" : "are"} visible and spoil${reached === 1 ? "s" : ""} ` +
        `${name === "q" ? "the row itself" : "every row that sees it"}. Find out where they come from (a division by 0, an overflow, memory that was ` +
        `never written)${name === "q" ? "." : ", or hide these keys: what a mask hides has no influence."}`;
  return {
    code: "non-finite",
    severity: reached > 0 ? "error" : "info",
    message: `${name} holds ${count(values, "value")} that ${values === 1 ? "is" : "are"} NaN or ±∞, first ${first.value} at ${first.place}. ${effect}`,
    batches: unique((place) => Math.floor(place / length / own)),
    heads: unique((place) => Math.floor(place / length) % own),
    ...(name === "q" ? { rows: positions } : { keys: positions }),
    numbers: { values, places: concerned.length, visible: reached },
  };
}

/** Scores that are NaN or +∞ although q and k (as they were cleaned) are finite. */
export function brokenFinding(rows: RowStatistics, bias: BiasValues | undefined): Finding[] {
  if (!rows.firstBroken) return [];
  const [b, h, i, j] = rows.firstBroken as [number, number, number, number];
  const added = bias?.values[placeOf(bias.strides, b, h, i, j)] ?? 0;
  const cause = Number.isFinite(added)
    ? "q·k leaves the range of float32 there (or a cache holds such keys): normalise q and k."
    : `The bias holds ${added} there: only finite numbers and −∞ mean something in a bias.`;
  const at = { batches: [b], heads: [h], rows: [i], keys: [j] };
  return [
    {
      code: "non-finite",
      severity: "error",
      message: `${count(rows.broken, "visible score")} ${rows.broken === 1 ? "is" : "are"} NaN or +∞, the first${places(at)}. ${cause}`,
      ...at,
      numbers: { scores: rows.broken },
    },
  ];
}

/** What the values of a bias are like. */
export interface BiasFacts {
  /** Finite values at or below HIDING, and the lowest of them. */
  readonly large: number;
  readonly lowest: number;
  /** Holds 0 and 1 and nothing else. */
  readonly zeroOne: boolean;
}

export function biasFacts(values: ArrayLike<number>): BiasFacts {
  let [large, lowest, zeros, ones] = [0, 0, 0, 0];
  for (let at = 0; at < values.length; at++) {
    const value = values[at]!;
    if (value === 0) zeros++;
    else if (value === 1) ones++;
    else if (value <= HIDING && value > MASKED) {
      large++;
      lowest = Math.min(lowest, value);
    }
  }
  return { large, lowest, zeroOne: zeros > 0 && ones > 0 && zeros + ones === values.length };
}

export function biasFindings({ large, lowest, zeroOne }: BiasFacts, total: number, rows: RowStatistics, sizes: Sizes) {
  const findings: Finding[] = [];
  if (large > 0) {
    const at = rowsWith(rows, sizes, (sight) => sight === Sight.hidden);
    const unmasked = at.count
      ? ` ${count(at.count, "row")}${places(at.where)} ${at.count === 1 ? "has" : "have"} them at every key: numbers hide nothing there, and the output is a ` +
        "mean of values that were not to be seen, where a mask gives 0."
      : "";
    findings.push({
      code: "bias-is-mask",
      severity: "warning",
      message:
        `The bias holds large finite negatives, down to ${brief(lowest)}, at ${large} of ${count(total, "place")}: it looks like a mask.${unmasked} ` +
        "Give visibility as option mask (1 = may attend), or −Infinity in their place.",
      ...at.where,
      numbers: { values: large, lowest, rows: at.count },
    });
  }
  if (zeroOne) {
    findings.push({
      code: "bias-zero-one",
      severity: "warning",
      message:
        "The bias holds 0 and 1 only: it looks like a mask. As a bias, 1 merely multiplies a weight by e and 0 hides nothing. " +
        "Give it as option mask: { data: Uint8Array.from(data), dims }, where 1 = may attend.",
      numbers: { values: total },
    });
  }
  return findings;
}

type Where = Pick<Finding, "batches" | "heads" | "rows">;

/** The rows of which `is` holds; batch rows and heads are named where they are not all. */
function rowsWith(
  { sights }: RowStatistics,
  { batch, heads, queryLength }: Sizes,
  is: (sight: number, b: number, h: number, i: number) => boolean,
): { count: number; where: Where } {
  const [batches, own, rows] = [new Uint8Array(batch), new Uint8Array(heads), new Uint8Array(queryLength)];
  let found = 0;
  sights.forEach((sight, at) => {
    const [b, h, i] = [Math.floor(at / queryLength / heads), Math.floor(at / queryLength) % heads, at % queryLength];
    if (!is(sight, b, h, i)) return;
    batches[b] = own[h] = rows[i] = 1;
    found++;
  });
  if (found === 0) return { count: 0, where: {} };
  const some = (name: "batches" | "heads", flags: Uint8Array) =>
    flags.length > 1 && flags.includes(0) ? { [name]: listed(flags) } : {};
  return { count: found, where: { ...some("batches", batches), ...some("heads", own), rows: listed(rows) } };
}

/**
 * Rows to which nothing is visible. A row of padding is none of them: its own key, at its own position, is seen by nobody, while other rows
 * of its batch row see something. `offsets` is undefined where positions are unknown.
 */
export function blindFinding(rows: RowStatistics, sizes: Sizes, offsets: ArrayLike<number> | undefined): Finding[] {
  const { batch, heads, keyLength } = sizes;
  const seen = new Uint8Array(batch * keyLength);
  rows.seenKeys.forEach((flag, at) => {
    if (flag) seen[Math.floor(at / keyLength / heads) * keyLength + (at % keyLength)] = 1;
  });
  const awake = Array.from({ length: batch }, (_, b) => seen.subarray(b * keyLength, (b + 1) * keyLength).includes(1));
  const position = (b: number, i: number) => i + (offsets?.[b] ?? 0);
  const isPadding = (b: number, i: number) => {
    const own = position(b, i);
    return offsets !== undefined && awake[b] && own >= 0 && own < keyLength && !seen[b * keyLength + own];
  };
  const at = rowsWith(rows, sizes, (sight, b, _h, i) => sight === Sight.nothing && !isPadding(b, i));
  if (at.count === 0) return [];
  const examined = rows.sights.reduce((total, sight) => total + (sight === Sight.unknown ? 0 : 1), 0);
  const early = offsets && Array.from({ length: batch }, (_, b) => b).some((b) => position(b, at.where.rows![0]!) < 0);
  const everywhere = at.count === examined;
  const advice = everywhere
    ? "The restrictions given exclude one another, or a mask is inverted (1 = may attend here)."
    : early
      ? "Such rows lie before key 0 (row + queryOffset < 0): check queryOffset, or whether queries and keys are exchanged."
      : "Let each see a key at least (its own, say), or ignore what comes out of them if they are padding.";
  return [
    {
      code: "rows-see-nothing",
      severity: everywhere ? "error" : "warning",
      message: `${at.count} of ${count(examined, "row")}${places(at.where)} ${at.count === 1 ? "sees" : "see"} no key at all, so their output is 0. ${advice}`,
      ...at.where,
      numbers: { rows: at.count, examined },
    },
  ];
}
