/** The report as one table for a terminal. */
import chalk from "chalk";
import Table from "cli-table3";
import { multiple, percent, size, time, verdictValue } from "./numbers.mjs";

/** @typedef {import("../core/types.ts").Report} Report */
/** @typedef {import("../core/types.ts").Row} Row */

const COLUMNS = ["", "ms", "quartiles", "CPU ms", "rate", "of ceiling", "by CPU", "÷ simd", "÷ relaxed", "difference"];
/** @typedef {import("cli-table3").Cell} Cell */

/** @param {Report} report */
export function table(report) {
  const head = COLUMNS.map((name) => chalk.bold(name));
  const lines = new Table({
    head,
    style: { head: [], border: [], compact: true },
    colAligns: ["left", ...COLUMNS.slice(1).map(() => /** @type {const} */ ("right"))],
  });
  /** @param {string} text */
  const across = (text) => lines.push([{ content: text, colSpan: COLUMNS.length }]);
  for (const { id, title, workloads, rows } of report.cases) {
    across(chalk.bold.cyan(`${title}  [${id}]`));
    for (const workload of workloads) {
      const own = rows.filter((row) => row.workload === workload.id);
      if (workloads.length > 1) across(chalk.bold(`  ${workload.title}`));
      for (const row of own) lines.push(cellsOf(row, own, workload.unit));
    }
    for (const verdict of report.verdicts.filter((one) => one.case === id)) across(verdictLine(verdict));
  }
  for (const [id, title, rows] of extras(report)) {
    across(chalk.bold.cyan(`${title}  [${id}]`));
    for (const row of rows) across(`  ${row}`);
    for (const verdict of report.verdicts.filter((one) => one.case === id)) across(verdictLine(verdict));
  }
  return `${lines.toString()}\n${footnote(report)}`;
}

/**
 * @param {Row} row
 * @param {readonly Row[]} others of the same workload
 * @param {string} unit
 * @returns {Cell[]}
 */
function cellsOf(row, others, unit) {
  const name = `  ${row.role === "ours" ? chalk.green(nameOf(row)) : nameOf(row)}`;
  if (!row.wall) {
    const state = row.status === "wrong" ? chalk.red("wrong") : chalk.dim("not available");
    const difference = row.difference === undefined ? "" : ` (${differenceOf(row)})`;
    return [
      name,
      { content: shortened(`${state}: ${row.reason}${difference}`), colSpan: COLUMNS.length - 1, hAlign: "left" },
    ];
  }
  const { median, lowerQuartile, upperQuartile } = row.wall;
  /** How many times our time this one's is. */
  const ours = (/** @type {string} */ variant) => {
    const own = others.find((one) => one.role === "ours" && one.threads === 1 && one.variant === variant)?.wall;
    return own && row.role !== "ceiling" ? multiple(median / own.median) : "";
  };
  return [
    name,
    row.role === "ceiling" ? "" : chalk.bold(time(median)),
    row.role === "ceiling" ? "" : `${time(lowerQuartile)}–${time(upperQuartile)}`,
    row.role === "ceiling" || row.cpu === undefined ? "" : time(row.cpu),
    `${row.rate?.toFixed(unit === "tokens/s" ? 0 : 1)} ${unit}`,
    row.share === undefined ? "" : percent(row.share),
    row.cpuShare === undefined ? "" : percent(row.cpuShare),
    ours("simd"),
    ours("relaxed"),
    row.difference === undefined ? "" : differenceOf(row),
  ];
}

/** A long reason would make every column wide; the JSON has all of it. @param {string} text */
const shortened = (text) => (text.length > 120 ? `${text.slice(0, 119)}…` : text);

/** @param {Row} row */
const differenceOf = ({ difference = 0 }) =>
  Number.isFinite(difference) ? `${difference.toExponential(1)}` : "not comparable";

/** @param {Row} row */
function nameOf({ contestant, role, variant, threads = 1 }) {
  if (role !== "ours") return contestant;
  return `lookback, ${variant}${threads > 1 ? `, ${threads} threads` : ""}`;
}

/** @param {import("../core/types.ts").Verdict} verdict */
function verdictLine(verdict) {
  const mark = verdict.met === null ? chalk.dim("–") : verdict.met ? chalk.green("✔") : chalk.red("✘");
  const state = verdict.met === null ? "" : verdict.met ? ", met" : ", not met";
  return `  ${mark} ${verdict.variant ? `${verdict.variant}: ` : ""}${verdict.text}: ${verdictValue(verdict)}${state}`;
}

/**
 * What is no calculation.
 * @param {Report} report
 * @returns {[id: string, title: string, rows: string[]][]}
 */
function extras({ memory, sizes, start }) {
  /** @type {[string, string, string[]][]} */
  const found = [];
  if (memory)
    found.push([
      "memory",
      `Memory of a causal call, L = ${memory[0]?.length}, beyond its inputs and output`,
      memory.map(({ variant, extraBytes, reason }) =>
        extraBytes === undefined
          ? `lookback, ${variant}: not available: ${reason}`
          : `lookback, ${variant}: ${size(extraBytes)}`,
      ),
    ]);
  if (sizes) found.push(["sizes", "Sizes", sizes.map(({ name, bytes, how }) => `${name}: ${size(bytes)} ${how}`)]);
  if (start)
    found.push([
      "start",
      "Start, each in a fresh process",
      start.map(({ contestant, call, withImport, reason }) =>
        call && withImport
          ? `${contestant}: ${time(call.median)} ms (${time(call.lowerQuartile)}–${time(call.upperQuartile)}), ${time(withImport.median)} ms with its import`
          : `${contestant}: not available: ${reason}`,
      ),
    ]);
  return found;
}

/** @param {Report} report */
function footnote({ machine, date, quick }) {
  const busy = Math.max(...machine.load) > machine.cores / 2;
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}; ${machine.engine} (V8 ${machine.v8}); ${date}`,
    versions.join(", "),
    "ms: median of the samples; ÷ simd, ÷ relaxed: the time divided by ours in one thread; difference: largest, from float64.",
    "Of ceiling: by the clock on the wall, and by CPU time, which tells more on a machine that is busy with other things.",
    "Of two threads: of what both do at once, which Node.js measures; in a browser, of twice what one does.",
    "Rates count the visible half where attention is causal. Ceilings are measured between the samples of the same case.",
    ...(quick
      ? [chalk.yellow("--quick: few samples of little warmth; good to see that all works, not to compare.")]
      : []),
    ...(busy
      ? [chalk.yellow(`The machine was busy (load ${machine.load.map((n) => n.toFixed(1)).join(", then ")}).`)]
      : []),
  ].join("\n");
}
