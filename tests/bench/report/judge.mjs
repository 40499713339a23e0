/** Holds a report against the targets of targets.json. */
import { readFileSync } from "node:fs";
import { largest } from "./summarise.mjs";

/** @typedef {import("../core/types.ts").Report} Report */
/** @typedef {import("../core/types.ts").Verdict} Verdict */
/** @typedef {import("../core/types.ts").Variant} Variant */
/** @typedef {Omit<Report, "verdicts">} Measured */

/**
 * @typedef {object} Target
 * @property {string} case
 * @property {"share" | "rate" | "speedup" | "threads" | "time" | "memory" | "size" | "start"} metric
 * @property {string[]} [over] peers; the fastest of them counts
 * @property {string} [workload]
 * @property {string} [of] the workload whose time is the measure
 * @property {number} [times]
 * @property {string} [group]
 * @property {Limit} [atLeast]
 * @property {Limit} [atMost]
 * @property {Limit} [aim]
 */
/** @typedef {number | Record<Variant, number>} Limit */

/** @type {Target[]} */
const targets = JSON.parse(readFileSync(new URL("../targets.json", import.meta.url), "utf8"));
const variants = /** @type {const} */ (["simd", "relaxed"]);

/**
 * @param {Measured} report
 * @param {Report} [baseline] the report of another engine, whose shares are to be reached nearly
 * @returns {Verdict[]}
 */
export function judge(report, baseline) {
  return [
    ...targets.flatMap((target) => verdictsOf(target, report)),
    ...(baseline ? againstBaseline(report, baseline) : []),
  ];
}

/**
 * @param {Target} target
 * @param {Measured} report
 * @returns {Verdict[]}
 */
function verdictsOf(target, report) {
  if (!wasRun(target, report)) return [];
  const perVariant = typeof (target.atLeast ?? target.atMost) === "object";
  return (perVariant ? variants : [undefined]).map((variant) => {
    const value = measuredValue(target, report, variant);
    const { limit, least } = limitOf(target, variant);
    return {
      case: target.case,
      text: textOf(target, variant) + machineOf(target, report, variant),
      ...(variant && { variant }),
      ...(value !== undefined && { value }),
      unit: unitOf(target),
      met: value === undefined ? null : least ? value >= limit : value <= limit,
    };
  });
}

/**
 * @param {Target} target
 * @param {Measured} report
 */
function wasRun(target, report) {
  switch (target.metric) {
    case "size":
      return report.sizes !== undefined;
    case "start":
      return report.start !== undefined;
    case "memory":
      return report.memory !== undefined;
    default:
      return report.cases.some(({ id }) => id === target.case);
  }
}

/**
 * @param {Target} target
 * @param {Measured} report
 * @param {Variant | undefined} variant
 * @returns {number | undefined}
 */
function measuredValue(target, report, variant) {
  const rows = report.cases.find(({ id }) => id === target.case)?.rows ?? [];
  const ours = (/** @type {number} */ threads, /** @type {string} */ workload) =>
    rows.find(
      (row) => row.role === "ours" && row.variant === variant && row.threads === threads && row.workload === workload,
    );
  const only = rows.at(-1)?.workload ?? "";
  switch (target.metric) {
    case "share":
      return ours(1, only)?.share;
    case "rate":
      return ours(1, target.workload ?? only)?.rate;
    case "speedup": {
      const speedups = (target.over ?? []).map((peer) => ours(1, only)?.speedups?.[peer]);
      // The fastest peer is the one that leaves the least.
      const left = largest(speedups.map((speedup) => speedup && -speedup));
      return left && -left;
    }
    case "threads":
      return ratio(ours(1, only)?.wall?.median, ours(2, only)?.wall?.median);
    case "time": {
      const measure = ours(1, target.of ?? "")?.wall?.median;
      return ratio(ours(1, target.workload ?? only)?.wall?.median, measure && measure * (target.times ?? 1));
    }
    case "memory":
      return report.memory?.find((row) => row.variant === variant)?.extraBytes;
    case "size":
      return largest((report.sizes ?? []).filter(({ group }) => group === target.group).map(({ bytes }) => bytes));
    case "start": {
      const call = (/** @type {string | undefined} */ name) =>
        report.start?.find(({ contestant }) => contestant === name)?.call?.median;
      return ratio(call(target.over?.[0]), call("lookback"));
    }
  }
}

/**
 * @param {number | undefined} a
 * @param {number | undefined} b
 */
function ratio(a, b) {
  return a !== undefined && b !== undefined ? a / b : undefined;
}

/**
 * @param {Target} target
 * @param {Variant | undefined} variant
 */
function limitOf(target, variant) {
  const of = (/** @type {Limit | undefined} */ limit) =>
    typeof limit === "object" ? (variant === undefined ? undefined : limit[variant]) : limit;
  const limit = of(target.atLeast) ?? of(target.atMost);
  if (limit === undefined) throw new Error(`a target of ${target.case} has no limit`);
  return { limit, least: target.atLeast !== undefined, aim: of(target.aim) };
}

/** @param {Target} target */
function unitOf({ metric }) {
  if (metric === "share") return "%";
  if (metric === "rate") return "tokens/s";
  return metric === "size" || metric === "memory" ? "B" : "×";
}

/**
 * @param {Target} target
 * @param {Variant | undefined} variant
 */
function textOf(target, variant) {
  const { limit, least, aim } = limitOf(target, variant);
  const sign = least ? "≥" : "≤";
  const over = target.over?.join(", ");
  const multiple = `${sign} ${Number(limit.toPrecision(3))} ×`;
  switch (target.metric) {
    case "share":
      return `${sign} ${percent(limit)} of the ceiling${aim === undefined ? "" : ` (aim ${percent(aim)})`}`;
    case "rate":
      return `${target.workload} ${sign} ${limit} tokens/s`;
    case "speedup":
      return `${multiple} ${target.over?.length === 1 ? over : `the faster of ${over}`}`;
    case "threads":
      return `2 threads ${multiple} one`;
    case "time":
      return `${target.workload} ${multiple} the time of ${target.of}${target.times ? ` × ${target.times}` : ""}`;
    case "memory":
      return `${sign} ${limit / 1e6} MB beyond inputs and output`;
    case "size":
      return `${target.group} ${sign} ${limit / 1000} kB`;
    case "start":
      return `createLookback() ${multiple} faster than the first session of ${over}`;
  }
}

/**
 * What bounds the threads: how much more both cores do than one where nothing but registers is in use.
 * @param {Target} target
 * @param {Measured} report
 * @param {Variant | undefined} variant
 */
function machineOf(target, report, variant) {
  if (target.metric !== "threads") return "";
  const rows = report.cases.find(({ id }) => id === target.case)?.rows ?? [];
  const rate = (/** @type {string} */ name) => rows.find(({ contestant }) => contestant === name)?.rate;
  const both = ratio(rate(`ceiling-${variant}-2`), rate(`ceiling-${variant}`));
  return both === undefined ? "" : ` (registers alone: ${both.toFixed(2)} ×)`;
}

/** @param {number} share */
const percent = (share) => `${Math.round(100 * share)} %`;

const LEAST_OF_BASELINE = 0.85;

/**
 * @param {Measured} report
 * @param {Report} baseline
 * @returns {Verdict[]}
 */
function againstBaseline(report, baseline) {
  return report.cases.flatMap(({ id, rows }) =>
    rows
      .filter((row) => row.role === "ours" && row.threads === 1 && row.share !== undefined)
      .flatMap((row) => {
        const other = baseline.cases
          .find((one) => one.id === id)
          ?.rows.find((one) => one.workload === row.workload && one.contestant === row.contestant);
        const value = ratio(row.share, other?.share);
        return value === undefined
          ? []
          : [
              {
                case: id,
                text: `${row.workload}: ≥ ${percent(LEAST_OF_BASELINE)} of its share on ${baseline.machine.engine}`,
                ...(row.variant && { variant: row.variant }),
                value,
                unit: "%",
                met: value >= LEAST_OF_BASELINE,
              },
            ];
      }),
  );
}
