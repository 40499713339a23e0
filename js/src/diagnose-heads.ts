import type { RowStatistics, Sizes } from "./diagnose-rows.js";
import { brief, count, listed, percent, places } from "./diagnose-text.js";
import type { Finding } from "./diagnose-types.js";

// What the weights of whole heads look like.

/** With fewer rows than this a head is not judged: what one row does is no habit. */
const MIN_ROWS = 4;
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
/** "Nearly all" rows, and "most" of them. */
const NEARLY_ALL = 0.75;
const MOST_ROWS = 0.8;
/** Relative difference of two heads' rows below which they are one head; heads with σ = 0.14 by chance differ by 0.2. */
const COPY_DIFFERENCE = 0.01;

export interface ScaleFacts {
  readonly scale: number;
  readonly headDim: number;
  /** The caller chose it. */
  readonly given: boolean;
}

export function headFindings(rows: RowStatistics, sizes: Sizes, facts: ScaleFacts): Finding[] {
  const judged = listed(rows.sums.map((sums) => sums.judged >= MIN_ROWS));
  if (judged.length === 0) return [];
  const mean = (h: number, field: "deficit" | "evenness" | "oneHot" | "spread") =>
    rows.sums[h]![field] / rows.sums[h]!.judged;
  const average = (field: "deficit" | "evenness" | "spread") =>
    judged.reduce((total, h) => total + mean(h, field), 0) / judged.length;

  const findings: Finding[] = [];
  const scale = scaleFinding(facts, average);
  if (scale) findings.push(scale);
  const uniform = judged.filter((h) => mean(h, "deficit") < UNIFORM_DEFICIT);
  if (uniform.length > 0 && !scale) findings.push(uniformFinding(uniform, sizes));
  const saturated = judged.filter((h) => mean(h, "oneHot") >= NEARLY_ALL && mean(h, "spread") > SATURATED_SPREAD);
  if (saturated.length > 0 && !scale) {
    const spread = Math.max(...saturated.map((h) => mean(h, "spread")));
    const at = headsOf(saturated, sizes);
    findings.push({
      code: "saturated",
      severity: "warning",
      message:
        `Softmax is saturated${places(at)}: the scores of a row lie ${brief(spread)} apart on average, so that one key takes all the weight in ` +
        `${percent(NEARLY_ALL)} of the rows or more, and gradients vanish. Normalise q and k, ` +
        `${facts.given ? "or lower the scale" : "or check that their projections have the usual size"}.`,
      ...at,
      numbers: { spread, scale: facts.scale },
    });
  }
  findings.push(...sinkFindings(rows, sizes, judged));
  findings.push(...copyFindings(rows, sizes, new Set(uniform)));
  return findings;
}

/** Which heads, where there is more than one to choose from. */
const headsOf = (heads: readonly number[], sizes: Sizes): Pick<Finding, "heads"> => (sizes.heads > 1 ? { heads } : {});

function scaleFinding(
  { scale, headDim, given }: ScaleFacts,
  average: (field: "deficit" | "evenness") => number,
): Finding | undefined {
  if (!given || headDim < MIN_HEAD_DIM) return undefined;
  const usual = 1 / Math.sqrt(headDim);
  const factor = Math.abs(scale) / usual;
  const [evenness, deficit] = [average("evenness"), average("deficit")];
  const large = factor >= SCALE_FACTOR && evenness < COLLAPSED_EVENNESS;
  const small = factor <= 1 / SCALE_FACTOR && deficit < FLAT_DEFICIT;
  if (!large && !small) return undefined;
  const effect = large
    ? `the weights collapse onto few keys: their entropy is ${percent(evenness)} of that of equal weights`
    : `the weights are all but equal: their entropy is only ${brief(deficit)} nats below that of equal weights`;
  return {
    code: "scale-forgotten",
    severity: "warning",
    message:
      `Scale ${brief(scale)} is ${brief(large ? factor : 1 / factor)} times ${large ? "as large as" : "smaller than"} the usual ` +
      `1/√headDim = ${brief(usual)}, and ${effect}. Leave option scale out, or give the factor itself (1/√headDim, not headDim, its root or 1/headDim).`,
    numbers: { scale, usual, evenness, deficit },
  };
}

function uniformFinding(heads: number[], sizes: Sizes): Finding {
  const all = heads.length === sizes.heads;
  const at = headsOf(heads, sizes);
  return {
    code: "uniform-heads",
    severity: all ? "warning" : "info",
    message:
      `${count(heads.length, "head")} of ${sizes.heads}${places(at)} ${heads.length === 1 ? "gives" : "give"} every visible key the same weight: the output is the ` +
      "mean of the values. Check that q and k are not (nearly) zero, constant along the keys, or scaled twice.",
    ...at,
    numbers: { heads: heads.length },
  };
}

function sinkFindings(rows: RowStatistics, { batch, heads, keyLength }: Sizes, judged: readonly number[]): Finding[] {
  const sinks: number[] = [];
  const keys = new Set<number>();
  let largest = 0;
  for (const h of judged) {
    let taken = 0;
    const own: number[] = [];
    for (let b = 0; b < batch; b++) {
      const most = rows.most.subarray((b * heads + h) * keyLength, (b * heads + h + 1) * keyLength);
      const top = most.reduce((best, n, j) => (n > most[best]! ? j : best), 0);
      taken += most[top]!;
      if (most[top]! > 0) own.push(top);
    }
    const share = taken / rows.sums[h]!.judged;
    if (share < MOST_ROWS) continue;
    sinks.push(h);
    for (const key of own) keys.add(key);
    largest = Math.max(largest, share);
  }
  if (sinks.length === 0) return [];
  const at = { ...headsOf(sinks, { batch, heads, queryLength: 0, keyLength }), keys: [...keys].sort((a, b) => a - b) };
  return [
    {
      code: "sink-heads",
      severity: "info",
      message:
        `${count(sinks.length, "head")} of ${heads} ${sinks.length === 1 ? "sinks" : "sink"} into one token${places(at)}: it has more than half of the weight in up to ` +
        `${percent(largest)} of the rows. Trained models do this with their first token, and a rolling cache must keep it; elsewhere look for a key ` +
        "much larger than the others.",
      ...at,
      numbers: { heads: sinks.length, share: largest },
    },
  ];
}

/** Uniform heads are all alike, which has been said already. */
function copyFindings(rows: RowStatistics, { heads }: Sizes, uniform: ReadonlySet<number>): Finding[] {
  const groups = new Map<number, { heads: number[]; difference: number }>();
  const copies = new Set<number>();
  for (let first = 0; first < heads; first++) {
    if (copies.has(first) || uniform.has(first)) continue;
    for (let h = first + 1; h < heads; h++) {
      const difference = copies.has(h) || uniform.has(h) ? undefined : rows.difference(h, first, MIN_ROWS);
      if (difference === undefined || difference >= COPY_DIFFERENCE) continue;
      copies.add(h);
      const group = groups.get(first) ?? { heads: [first], difference: 0 };
      group.heads.push(h);
      group.difference = Math.max(group.difference, difference);
      groups.set(first, group);
    }
  }
  return Array.from(groups.values(), (group) => ({
    code: "copied-heads" as const,
    severity: group.heads.length === heads ? ("warning" as const) : ("info" as const),
    message:
      `Heads ${group.heads.join(", ")} have the same weights (they differ by ${percent(group.difference)}). Check that their projections were split and ` +
      "loaded from different rows; one of them would do.",
    heads: group.heads,
    numbers: { difference: group.difference },
  }));
}
