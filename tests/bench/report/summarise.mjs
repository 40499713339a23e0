/** Samples become medians, rates, shares of the ceiling and ratios to the peers. */
import { max, median, medianSorted, min, quantileSorted } from "simple-statistics";
import { root } from "../../../bindings/toolchain/paths.mjs";
import { contestants } from "../contestants/list.mjs";
import { unitOf } from "../core/workloads.mjs";

/** @typedef {import("../core/types.ts").RawRow} RawRow */
/** @typedef {import("../core/types.ts").Row} Row */
/** @typedef {import("../core/types.ts").Workload} Workload */

/**
 * @param {readonly number[]} values
 * @returns {import("../core/types.ts").Spread}
 */
export function spreadOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    median: medianSorted(sorted),
    lowerQuartile: quantileSorted(sorted, 0.25),
    upperQuartile: quantileSorted(sorted, 0.75),
    minimum: min(sorted),
    count: sorted.length,
  };
}

/**
 * @param {import("../core/types.ts").BenchCase} benchCase
 * @param {readonly Workload[]} workloads those that were run
 * @param {readonly RawRow[]} raw
 * @returns {import("../core/types.ts").CaseReport}
 */
export function caseReport({ id, title }, workloads, raw) {
  const rows = workloads.flatMap((workload) => {
    const own = raw.filter((row) => row.workload === workload.id).map((row) => withRate(row, unitOf(workload)));
    return own.map((row) => (row.role === "ours" ? { ...row, ...compared(row, own, unitOf(workload)) } : row));
  });
  return {
    id,
    title,
    workloads: workloads.map((workload) => ({ id: workload.id, title: workload.title, unit: unitOf(workload) })),
    rows,
  };
}

/**
 * @param {RawRow} raw
 * @param {import("../core/types.ts").Unit} unit
 * @returns {Row}
 */
function withRate({ samples, ...row }, unit) {
  const contestant = contestants.find(({ id }) => id === row.contestant);
  if (!contestant) throw new Error(`nobody is called ${row.contestant}`);
  const { role, variant, threads } = contestant;
  const reason = row.reason?.replaceAll(root, "…");
  const named = { ...row, ...(reason && { reason }), role, ...(variant && { variant }), ...(threads && { threads }) };
  if (!samples || !row.work) return named;
  const wall = spreadOf(samples.wall);
  const { operations, bytes, tokens = 0 } = row.work;
  const perMillisecond = (unit === "tokens/s" ? tokens : unit === "GB/s" ? bytes : operations) / wall.median;
  return {
    ...named,
    wall,
    ...(samples.cpu.length > 0 && (threads ?? 1) === 1 && { cpu: median(samples.cpu) }),
    rate: unit === "tokens/s" ? 1e3 * perMillisecond : perMillisecond / 1e6,
  };
}

/**
 * @param {Row} row one of ours
 * @param {readonly Row[]} others all of the workload
 * @param {import("../core/types.ts").Unit} unit
 * @returns {Pick<Row, "share" | "cpuShare" | "speedups">}
 */
function compared(row, others, unit) {
  if (!row.wall || row.rate === undefined) return {};
  const threads = row.threads ?? 1;
  const named = (/** @type {string} */ name) => others.find(({ contestant, rate }) => contestant === name && rate);
  const ofAll = threads > 1 ? named(`ceiling-${row.variant}-${threads}`) : undefined;
  const ceiling = unit === "GB/s" ? named("bandwidth") : (ofAll ?? named(`ceiling-${row.variant}`));
  // Cores read one memory; what they calculate together was measured, or is taken for so many times what one does.
  const cores = unit === "GB/s" || ofAll ? 1 : threads;
  const own = row.wall.median;
  const byCpu = cpuRate(row) / cpuRate(ceiling);
  const speedups = Object.fromEntries(
    others.flatMap((other) =>
      other.role === "peer" && other.wall ? [[other.contestant, other.wall.median / own]] : [],
    ),
  );
  return {
    ...(ceiling?.rate && { share: row.rate / (cores * ceiling.rate) }),
    ...(byCpu && { cpuShare: byCpu }),
    speedups,
  };
}

/**
 * Not a number where no CPU time was taken.
 * @param {Row | undefined} row
 */
function cpuRate(row) {
  return row?.cpu && row.rate && row.wall ? (row.rate * row.wall.median) / row.cpu : Number.NaN;
}

/**
 * The largest of numbers that may be missing.
 * @param {readonly (number | undefined)[]} values
 */
export function largest(values) {
  const present = values.filter((value) => value !== undefined);
  return present.length > 0 ? max(present) : undefined;
}
