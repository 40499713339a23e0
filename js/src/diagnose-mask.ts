import { count, listed, type Places, percent, places } from "./diagnose-text.js";
import type { Finding } from "./diagnose-types.js";

// What a mask or bias looks like by itself: causal but for some places, or the opposite of causal. Padding is left out of the picture (keys
// that no row sees, rows that see no key), and so is every pattern that treats past and future alike: windows, documents, global tokens.

/**
 * A bias at or below this was meant as a mask: −10000 was BERT's, and all others (−1e9, −65504, −3.4e38) lie far below. ALiBi's largest slope
 * (½) comes to it at a distance of 20 000 only.
 */
export const HIDING = -1e4;

/** A leak shows at most this share of the future, relative to the share of the past that is shown; symmetric patterns have 1. */
const LEAK_SHARE = 1 / 3;
/** The same for a triangle that is one key too wide, which in small examples is a larger part of the future. */
const WIDE_SHARE = 1 / 2;
/** Below this many cells above, or below, the diagonal anything may be chance. */
const MIN_CELLS = 3;

/** Rows [from, to) of the queries. */
export type Slice = readonly [number, number];

export interface MaskPattern {
  /** 'mask', 'bias' or 'mask and bias'. */
  readonly name: string;
  /** May query i see key j, by the mask and bias given? */
  readonly open: (batch: number, head: number, i: number, j: number) => boolean;
  /** The numbers of batch rows and heads with a pattern of their own. */
  readonly batch: number;
  readonly heads: number;
  readonly slices: readonly Slice[];
  readonly queryLength: number;
  readonly keyLength: number;
  /** Positions of row 0, per batch row; undefined = the caller did not say, so both alignments are tried. */
  readonly offsets: Int32Array | undefined;
  /** The largest share of its weight that a row gives to later keys. */
  readonly futureWeight: number;
}

type Four = [number, number, number, number];
type Eight = [...Four, ...Four];

type Kind = "causal" | "wide" | "prefix" | "leak" | "inverted";

/** Places in the counts of cells; how many of them are visible follows each. NEXT = above the diagonal by exactly one. */
const [FUTURE, DIAGONAL, PAST, NEXT, COUNTS] = [0, 2, 4, 6, 8];

/** What was counted in one head or, added up, in several. */
interface Cells {
  readonly counts: Float64Array;
  /** Per row: later keys that it sees; per key: earlier rows that see it. */
  readonly leakingRows: Int32Array;
  readonly leaks: Int32Array;
}

function look({ open, slices, queryLength, keyLength }: MaskPattern, b: number, h: number, offset: number) {
  const [seenKeys, seeingRows] = [new Uint8Array(keyLength), new Uint8Array(queryLength)];
  for (const [from, to] of slices) {
    for (let i = from; i < to; i++) {
      for (let j = 0; j < keyLength; j++) if (open(b, h, i, j)) seenKeys[j] = seeingRows[i] = 1;
    }
  }
  const counts = new Float64Array(COUNTS);
  const [leakingRows, leaks, earlier] = [queryLength, keyLength, keyLength].map((n) => new Int32Array(n)) as [
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  const rows = listed(seeingRows);
  for (const i of rows) {
    for (let j = 0; j < keyLength; j++) {
      if (!seenKeys[j]) continue;
      const ahead = j - i - offset;
      const seen = +open(b, h, i, j);
      const at = ahead < 0 ? PAST : ahead > 0 ? FUTURE : DIAGONAL;
      counts[at]!++;
      counts[at + 1]! += seen;
      if (ahead <= 0) continue;
      earlier[j]!++;
      leaks[j]! += seen;
      leakingRows[i]! += seen;
      if (ahead > 1) continue;
      counts[NEXT]!++;
      counts[NEXT + 1]! += seen;
    }
  }
  const cells: Cells = { counts, leakingRows, leaks };
  return { kind: judge(cells, earlier, rows.length), cells };
}

function judge({ counts, leaks }: Cells, earlier: Int32Array, rows: number): Kind | undefined {
  const [future, futureSeen, diagonal, diagonalSeen, past, pastSeen, next, nextSeen] = [...counts] as Eight;
  if (future < MIN_CELLS || past < MIN_CELLS) return undefined;
  if (futureSeen === 0) return "causal";
  if (futureSeen >= 0.99 * future) {
    // Transposed, it keeps the diagonal. With the whole past visible as well, it is a mask that hides each token from itself.
    const opposite = diagonalSeen < diagonal / 2 ? past - pastSeen >= rows / 2 : pastSeen <= 0.01 * past;
    return opposite ? "inverted" : undefined;
  }
  const ratio = futureSeen / future / (pastSeen / past); // Infinity where no past is seen
  if (futureSeen === nextSeen && nextSeen === next && ratio <= WIDE_SHARE) return "wide";
  if (ratio > LEAK_SHARE) return undefined;
  // Are the leaks exactly what the first tokens need to see one another?
  const prefix = (listed(leaks).at(-1) ?? 0) + 1;
  return prefix > 2 && leaks.every((n, j) => n === (j < prefix ? earlier[j] : 0)) ? "prefix" : "leak";
}

export function maskFindings(pattern: MaskPattern): Finding[] {
  const { batch, heads, queryLength, keyLength } = pattern;
  const groups = new Map<Kind, { cells: Cells; batches: Set<number>; heads: Set<number> }>();
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      const offsets = pattern.offsets ? [pattern.offsets[b]!] : [0, keyLength - queryLength];
      const sights = offsets.map((offset) => look(pattern, b, h, offset)).filter(({ kind }) => kind);
      if (sights.length === 0 || sights.some(({ kind }) => kind === "causal")) continue;
      const { cells, kind } = sights[0]!;
      const group = groups.get(kind!) ?? { cells, batches: new Set(), heads: new Set() };
      if (group.cells !== cells) {
        for (const field of ["counts", "leakingRows", "leaks"] as const) {
          const sum = group.cells[field];
          for (let at = 0; at < sum.length; at++) sum[at]! += cells[field][at]!;
        }
      }
      groups.set(kind!, group);
      group.batches.add(b);
      group.heads.add(h);
    }
  }
  return Array.from(groups, ([kind, { cells, ...own }]) => {
    const at = { ...(batch > 1 && { batches: [...own.batches] }), ...(heads > 1 && { heads: [...own.heads] }) };
    return maskFinding(pattern, kind, cells, at);
  }).filter(({ code }) => code === "mask-inverted" || !pattern.offsets || pattern.futureWeight > 0);
}

function maskFinding({ name, offsets, futureWeight }: MaskPattern, kind: Kind, cells: Cells, at: Places): Finding {
  const [future, futureSeen, past, pastSeen] = [FUTURE, FUTURE + 1, PAST, PAST + 1].map(
    (at) => cells.counts[at]!,
  ) as Four;
  const severity = offsets && kind !== "prefix" ? "warning" : "info";
  const guess = offsets ? "" : " This assumes how queries and keys are aligned: queryOffset would tell.";
  if (kind === "inverted") {
    const message =
      `The ${name}${places(at)} shows ${percent(futureSeen / future)} of the future and ${percent(pastSeen / past)} of the past: it looks inverted, ` +
      `or transposed. 1 = may attend, rows are queries: take masks.fromTorch(…) for nn.MultiheadAttention's, or masks.from(mask).not().${guess}`;
    return {
      code: "mask-inverted",
      severity,
      message,
      ...at,
      numbers: { future: futureSeen / future, past: pastSeen / past },
    };
  }
  const spots = { ...at, rows: listed(cells.leakingRows), keys: listed(cells.leaks) };
  const exception = {
    wide: ", a triangle one key too wide",
    prefix: `, a prefix of ${count(spots.keys.at(-1)! + 1, "key")} that see one another (a prefix-LM)`,
  }[kind as string];
  const message =
    `The ${name} is causal except for ${futureSeen} of ${count(future, "place")} above the diagonal${places(spots)}${exception ?? ""}` +
    `${offsets ? `; rows give up to ${percent(futureWeight)} of their weight to later keys` : ""}. If that is not meant, set causal: true beside it.${guess}`;
  const numbers = { cells: futureSeen, share: futureSeen / future, ...(offsets && { weight: futureWeight }) };
  return { code: "future-leak", severity, message, ...spots, numbers };
}
