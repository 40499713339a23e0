import type { HeadSums, RowStatistics, Sizes } from "./diagnose-rows.js";
import { brief, count, type Places, percent, places } from "./diagnose-text.js";
import type { Finding, FindingCode } from "./diagnose-types.js";

// What the weights of whole heads look like.

/** With fewer rows than this a head is not judged: what a few rows do may be chance. (A scale that was given is, from one row on.) */
const MIN_ROWS = 8;
/** ln(visible) − entropy ≈ σ²/2 for scores of standard deviation σ: 0.01 is σ = 0.14, weights that differ by a seventh. */
const UNIFORM_DEFICIT = 0.01;
/** The same where a scale below the usual one explains it: σ = 0.3, where the usual scale gives about 1. */
const FLAT_DEFICIT = 0.05;
/** Entropy over ln(visible) below which a scale above the usual one is to blame: normal scores with σ = 1 have 0.75 and more. */
const COLLAPSED_EVENNESS = 0.5;
/** Factors of headDim^(±½), as in 1, 1/headDim or √headDim for 1/√headDim, are at least this for a headDim of 16. */
const SCALE_FACTOR = 4;
const MIN_HEAD_DIM = 16;
/** exp(−30) = 1e-13 is far below float32's resolution of 1: the smallest keys cannot count, whatever the values. */
const SATURATED_SPREAD = 30;
/** Shares of a head's rows. Scores may tie by chance, and the first rows of a causal head see too little to show a habit. */
const SATURATED_ROWS = 0.75;
const SINK_ROWS = 0.8;
/** Relative difference of two heads' rows below which they are one head; heads with σ = 0.14 by chance differ by 0.2. */
const COPY_DIFFERENCE = 0.01;

export interface ScaleFacts {
  /** Undefined = the usual one. */
  readonly given: number | undefined;
  readonly headDim: number;
}

export function headFindings(rows: RowStatistics, { batch, heads, keyLength }: Sizes, facts: ScaleFacts): Finding[] {
  const findings: Finding[] = [];
  const mean = (h: number, field: keyof HeadSums) => rows.sums[h]![field] / rows.sums[h]!.judged;
  const seen = [...rows.sums.keys()].filter((h) => rows.sums[h]!.judged > 0);
  const judged = seen.filter((h) => rows.sums[h]!.judged >= MIN_ROWS);
  /** `message` follows "n heads of m (which)"; `grave` where all heads alike are more than a curiosity. */
  const add = (
    code: FindingCode,
    grave: boolean,
    found: number[],
    message: string,
    numbers: Finding["numbers"],
    more?: Places,
  ) => {
    if (found.length === 0) return;
    const at = { ...(heads > 1 && { heads: found }), ...more };
    const severity = grave ? "warning" : "info";
    findings.push({
      code,
      severity,
      message: `${found.length} of ${count(heads, "head")}${places(at)}: ${message}`,
      ...at,
      numbers,
    });
  };

  const scale =
    seen.length > 0 && scaleFinding(facts, (field) => seen.reduce((sum, h) => sum + mean(h, field) / seen.length, 0));
  if (scale) findings.push(scale);
  const uniform = judged.filter((h) => mean(h, "deficit") < UNIFORM_DEFICIT);
  const saturated = judged.filter((h) => mean(h, "oneHot") >= SATURATED_ROWS && mean(h, "spread") > SATURATED_SPREAD);
  if (!scale) {
    const same =
      "every visible key has the same weight, so the output is the mean of the values. Are q or k (nearly) zero, or scaled twice?";
    add("uniform-heads", uniform.length === heads, uniform, same, { heads: uniform.length });
    const spread = Math.max(...saturated.map((h) => mean(h, "spread")));
    const sharp =
      `softmax is saturated, one key has all the weight in ${percent(SATURATED_ROWS)} of the rows or more, as the scores of a row lie up to ` +
      `${brief(spread)} apart (on average), and gradients vanish. Normalise q and k${facts.given === undefined ? "" : ", or lower the scale"}.`;
    add("saturated", true, saturated, sharp, { spread });
  }

  const sunk = new Set<number>();
  let most = 0;
  const sinks = judged.filter((h) => {
    const tops = Array.from({ length: batch }, (_, b) => {
      const row = rows.most.subarray((b * heads + h) * keyLength, (b * heads + h + 1) * keyLength);
      return row.reduce((best, n, j) => (n > best.n ? { n, j } : best), { n: 0, j: 0 });
    });
    const share = tops.reduce((sum, { n }) => sum + n, 0) / rows.sums[h]!.judged;
    if (share < SINK_ROWS) return false;
    for (const { n, j } of tops) if (n > 0) sunk.add(j);
    most = Math.max(most, share);
    return true;
  });
  const sink =
    `one key has more than half of the weight in up to ${percent(most)} of the rows. With the first token trained models do so; else look for a key much ` +
    "larger than the others.";
  add("sink-heads", false, sinks, sink, { share: most }, { keys: [...sunk].sort((a, b) => a - b) });

  // Uniform heads are all alike, which has been said already.
  const single = judged.filter((h) => !uniform.includes(h));
  while (single.length > 0) {
    const first = single.shift()!;
    const copies = single.filter((h) => rows.difference(h, first, MIN_ROWS) < COPY_DIFFERENCE);
    if (copies.length === 0) continue;
    for (const h of copies) single.splice(single.indexOf(h), 1);
    const difference = Math.max(...copies.map((h) => rows.difference(h, first, MIN_ROWS)));
    const copied = `their weights are the same (they differ by ${percent(difference)}). Were their projections loaded from different rows?`;
    add("copied-heads", copies.length === heads - 1, [first, ...copies], copied, { difference });
  }
  return findings;
}

function scaleFinding(
  { given, headDim }: ScaleFacts,
  average: (field: "deficit" | "evenness") => number,
): Finding | undefined {
  if (given === undefined || headDim < MIN_HEAD_DIM) return undefined;
  const usual = 1 / Math.sqrt(headDim);
  const factor = Math.abs(given) / usual;
  const [evenness, deficit] = [average("evenness"), average("deficit")];
  const large = factor >= SCALE_FACTOR && evenness < COLLAPSED_EVENNESS;
  if (!large && !(factor <= 1 / SCALE_FACTOR && deficit < FLAT_DEFICIT)) return undefined;
  return {
    code: "scale-forgotten",
    severity: "warning",
    message:
      `Scale ${brief(given)} is ${brief(factor)} times the usual 1/√headDim = ${brief(usual)}, and the weights are ${large ? "all but one-hot" : "all but equal"}: ` +
      `entropy is ${percent(evenness)} of that of equal weights. Leave scale out, or give the factor itself (not headDim, its root or 1/headDim).`,
    numbers: { scale: given, usual, evenness, deficit },
  };
}
