/** Samples become medians, rates, shares of the ceiling and ratios to the peers. */
import { max, mean, medianSorted, min, quantileSorted } from "simple-statistics";
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
 * @param {"GFLOP/s" | "GB/s"} unit
 * @returns {Row}
 */
function withRate({ samples, ...row }, unit) {
  const contestant = contestants.find(({ id }) => id === row.contestant);
  if (!contestant) throw new Error(`nobody is called ${row.contestant}`);
  const { role, variant, threads } = contestant;
  const named = { ...row, role, ...(variant && { variant }), ...(threads && { threads }) };
  if (!samples || !row.work) return named;
  const wall = spreadOf(samples.wall);
  const amount = unit === "GB/s" ? row.work.bytes : row.work.operations;
  return {
    ...named,
    wall,
    // The CPU's clock is coarse, so a mean; of one thread only, or it says nothing about a call.
    ...(samples.cpu.length > 0 && { cpu: mean(samples.cpu) }),
    rate: amount / wall.median / 1e6,
  };
}

/**
 * @param {Row} row one of ours
 * @param {readonly Row[]} others all of the workload
 * @param {"GFLOP/s" | "GB/s"} unit
 * @returns {Pick<Row, "share" | "speedups">}
 */
function compared(row, others, unit) {
  if (!row.wall || row.rate === undefined) return {};
  const ceiling = others.find(({ contestant }) =>
    unit === "GB/s" ? contestant === "bandwidth" : contestant === `ceiling-${row.variant}`,
  )?.rate;
  // Cores compute apart, but they read one memory.
  const cores = unit === "GB/s" ? 1 : (row.threads ?? 1);
  const { median } = row.wall;
  const speedups = Object.fromEntries(
    others.flatMap((other) =>
      other.role === "peer" && other.wall ? [[other.contestant, other.wall.median / median]] : [],
    ),
  );
  return { ...(ceiling && { share: row.rate / (cores * ceiling) }), speedups };
}

/**
 * The largest of numbers that may be missing.
 * @param {readonly (number | undefined)[]} values
 */
export function largest(values) {
  const present = values.filter((value) => value !== undefined);
  return present.length > 0 ? max(present) : undefined;
}
