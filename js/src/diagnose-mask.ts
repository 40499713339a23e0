import { brief, count, listed, percent, places } from "./diagnose-text.js";
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

/** May query i see key j, by the mask and bias given? */
export type Open = (batch: number, head: number, i: number, j: number) => boolean;

export interface MaskPattern {
  readonly open: Open;
  /** The batch rows and heads with a pattern of their own. */
  readonly batches: readonly number[];
  readonly heads: readonly number[];
  readonly slices: readonly Slice[];
  readonly queryLength: number;
  readonly keyLength: number;
  /** Positions of row 0, per batch row; undefined = the caller did not say, so both alignments are tried. */
  readonly offsets: ArrayLike<number> | undefined;
  /** 'mask', 'bias' or 'mask and bias'. */
  readonly name: string;
}

interface Cells {
  /** Cells above, on and below the diagonal, and how many of them are visible. */
  future: number;
  futureSeen: number;
  diagonal: number;
  diagonalSeen: number;
  past: number;
  pastSeen: number;
  /** Above the diagonal by exactly one. */
  next: number;
  nextSeen: number;
  rows: number;
  leakingRows: Uint8Array;
  leakingKeys: Uint8Array;
}

type Kind = "causal" | "wide" | "prefix" | "leak" | "inverted" | "transposed";

interface Judged {
  readonly kind: Kind;
  readonly cells: Cells;
}

function countCells(see: (i: number, j: number) => boolean, pattern: MaskPattern, offset: number): [Cells, Uint8Array] {
  const { slices, queryLength, keyLength } = pattern;
  const seenKeys = new Uint8Array(keyLength);
  const seeingRows = new Uint8Array(queryLength);
  for (const [from, to] of slices) {
    for (let i = from; i < to; i++) {
      for (let j = 0; j < keyLength; j++) if (see(i, j)) seenKeys[j] = seeingRows[i] = 1;
    }
  }
  const cells: Cells = {
    ...{ future: 0, futureSeen: 0, diagonal: 0, diagonalSeen: 0, past: 0, pastSeen: 0, next: 0, nextSeen: 0, rows: 0 },
    leakingRows: new Uint8Array(queryLength),
    leakingKeys: new Uint8Array(keyLength),
  };
  for (let i = 0; i < queryLength; i++) {
    if (!seeingRows[i]) continue;
    cells.rows++;
    for (let j = 0; j < keyLength; j++) {
      if (!seenKeys[j]) continue;
      const ahead = j - i - offset;
      const seen = see(i, j) ? 1 : 0;
      if (ahead > 0) {
        cells.future++;
        cells.futureSeen += seen;
        if (ahead === 1) {
          cells.next++;
          cells.nextSeen += seen;
        }
        if (seen) cells.leakingRows[i] = cells.leakingKeys[j] = 1;
      } else if (ahead === 0) {
        cells.diagonal++;
        cells.diagonalSeen += seen;
      } else {
        cells.past++;
        cells.pastSeen += seen;
      }
    }
  }
  return [cells, seenKeys];
}

function judge(see: (i: number, j: number) => boolean, pattern: MaskPattern, offset: number): Judged | undefined {
  const [cells, seenKeys] = countCells(see, pattern, offset);
  const { future, futureSeen, diagonal, diagonalSeen, past, pastSeen, next, nextSeen, rows } = cells;
  if (future < MIN_CELLS || past < MIN_CELLS) return undefined;
  if (futureSeen === 0) return { kind: "causal", cells };
  if (futureSeen >= 0.99 * future) {
    if (pastSeen <= 0.01 * past && diagonalSeen === diagonal) return { kind: "transposed", cells };
    // With the whole past visible as well, it is a mask that hides each token from itself.
    return diagonalSeen < diagonal / 2 && past - pastSeen >= rows / 2 ? { kind: "inverted", cells } : undefined;
  }
  const ratio = futureSeen / future / (pastSeen / past); // Infinity and NaN where no past is seen
  if (futureSeen === nextSeen && nextSeen === next && ratio <= WIDE_SHARE) return { kind: "wide", cells };
  if (!(ratio <= LEAK_SHARE)) return undefined;
  return { kind: isPrefix(cells, seenKeys, pattern.slices, offset) ? "prefix" : "leak", cells };
}

/** Are the leaks exactly what the first tokens need to see one another? */
function isPrefix(cells: Cells, seenKeys: Uint8Array, slices: readonly Slice[], offset: number): boolean {
  const length = cells.leakingKeys.lastIndexOf(1) + 1;
  let inside = 0;
  for (const [from, to] of slices) {
    for (let i = from; i < to; i++) for (let j = Math.max(0, i + offset + 1); j < length; j++) inside += seenKeys[j]!;
  }
  return inside === cells.futureSeen && length > 2;
}

/** `futureWeight` tells how much weight a head really gives to the future, where that is known. */
export function maskFindings(
  pattern: MaskPattern,
  futureWeight: (batches: readonly number[], heads: readonly number[]) => number,
): Finding[] {
  const { batches, heads, queryLength, keyLength } = pattern;
  const groups = new Map<Kind, { batches: Set<number>; heads: Set<number>; judged: Judged[] }>();
  for (const b of batches) {
    for (const h of heads) {
      const see = (i: number, j: number) => pattern.open(b, h, i, j);
      const offsets = pattern.offsets ? [pattern.offsets[b]!] : [0, keyLength - queryLength];
      const verdicts = offsets.map((offset) => judge(see, pattern, offset)).filter((verdict) => verdict !== undefined);
      const judged = verdicts.find(({ kind }) => kind === "causal") ?? verdicts[0];
      if (!judged || judged.kind === "causal") continue;
      const group = groups.get(judged.kind) ?? { batches: new Set(), heads: new Set(), judged: [] };
      group.batches.add(b);
      group.heads.add(h);
      group.judged.push(judged);
      groups.set(judged.kind, group);
    }
  }
  return Array.from(groups, ([kind, group]) => {
    const at = {
      ...(batches.length > 1 && { batches: [...group.batches] }),
      ...(heads.length > 1 && { heads: [...group.heads] }),
    };
    const finding = maskFinding(kind, group.judged, pattern, at);
    if (finding.code !== "future-leak" || !pattern.offsets) return finding;
    const weight = futureWeight([...group.batches], [...group.heads]);
    const message = `${finding.message} Rows give up to ${percent(weight)} of their weight to later keys.`;
    return { ...finding, message, numbers: { ...finding.numbers, weight } };
  });
}

function maskFinding(kind: Kind, judged: Judged[], { name, offsets }: MaskPattern, at: Partial<Finding>): Finding {
  const sum = (field: "future" | "futureSeen" | "past" | "pastSeen") =>
    judged.reduce((total, { cells }) => total + cells[field], 0);
  const [future, futureSeen, past, pastSeen] = [sum("future"), sum("futureSeen"), sum("past"), sum("pastSeen")];
  const severity = offsets && kind !== "prefix" ? "warning" : "info";
  const guessed = offsets ? "" : " (Queries and keys differ in length; queryOffset would say how they are aligned.)";

  if (kind === "inverted" || kind === "transposed") {
    const what =
      kind === "inverted"
        ? `looks inverted: it shows ${percent(futureSeen / future)} of the future, hides tokens from themselves and shows ${percent(pastSeen / past)} ` +
          "of the past. Here 1 means may attend: take masks.fromTorch(…) for a mask of nn.MultiheadAttention, or masks.from(mask).not()."
        : "looks transposed: every row sees itself and the future, and no past. Rows are queries, columns are keys.";
    const numbers = { future: futureSeen / future, past: pastSeen / past };
    return { code: "mask-inverted", severity, message: `The ${name}${places(at)} ${what}${guessed}`, ...at, numbers };
  }

  const [rows, keys] = (["leakingRows", "leakingKeys"] as const).map((field) =>
    listed(judged[0]!.cells[field].map((_, i) => Number(judged.some(({ cells }) => cells[field][i] === 1)))),
  ) as [number[], number[]];
  const where = { ...at, rows, keys };
  const amount = `${futureSeen} of ${count(future, "place")} above the diagonal`;
  const message = {
    wide: `The ${name} is a causal triangle that is one key too wide: each row also sees the next key, ${amount}${places(at)}. Hide the first diagonal above as well (numpy's triu takes k = 1), or set causal: true.`,
    prefix: `The ${name} is causal but for the first ${keys.at(-1)! + 1} keys, which see one another${places(at)}: a prefix-LM. If that is not meant, set causal: true.`,
    leak: `The ${name} is causal except for ${amount} (${brief((100 * futureSeen) / future)} %)${places(where)}. If queries must not see the future, set causal: true; it applies together with the ${name}.`,
  }[kind as "wide" | "prefix" | "leak"];
  const numbers = { cells: futureSeen, share: futureSeen / future };
  return { code: "future-leak", severity, message: message + guessed, ...where, numbers };
}
