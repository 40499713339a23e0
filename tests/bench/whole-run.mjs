/** What the benchmarks in Node and in a browser have in common: cases one after another, verdicts, the table, the file. */
import { readFileSync, writeFileSync } from "node:fs";
import { settingsOf } from "./core/measure.mjs";
import { reasonOf } from "./core/run-case.mjs";
import { loadNow, machineOf } from "./node/machine.mjs";
import { judge } from "./report/judge.mjs";
import { caseReport } from "./report/summarise.mjs";
import { table } from "./report/table.mjs";

/** @typedef {import("./core/types.ts").Report} Report */
/** @typedef {import("./options.mjs").Options} Options */

/**
 * @typedef {object} Place
 * @property {{ engine: string, v8: string }} engine
 * @property {(task: Omit<import("./node/case-process.mjs").Task, "excluded">) => Promise<import("./core/types.ts").RawRow[]>} runCase
 * @property {{ [Name in "memory" | "sizes" | "start"]?: () => Promise<Report[Name]> }} [extras]
 */

/**
 * @param {Options} options
 * @param {Place} place
 */
export async function wholeRun(options, { engine, runCase, extras = {} }) {
  const { quick } = options;
  /** @type {Report | undefined} */
  const baseline = options.baseline ? JSON.parse(readFileSync(options.baseline, "utf8")) : undefined;
  const settings = settingsOf(quick);
  const contestants = options.contestants.map(({ id }) => id);
  const before = loadNow();
  const date = new Date().toISOString();
  const cases = [];
  for (const one of options.cases) {
    tell(one.title);
    const workloads = [...((quick && one.quick) || one.workloads)];
    const rows = await runCase({ workloads, contestants, settings }).catch((error) =>
      // The other cases can still be measured.
      workloads.flatMap(({ id: workload }) =>
        contestants.map((contestant) => ({ workload, contestant, status: "not available", reason: reasonOf(error) })),
      ),
    );
    cases.push(caseReport(one, workloads, /** @type {import("./core/types.ts").RawRow[]} */ (rows)));
  }
  /** @type {Pick<Report, "memory" | "sizes" | "start">} */
  const others = {};
  for (const [name, measure] of Object.entries(extras)) {
    if (!options.extras.includes(name)) continue;
    tell(name);
    Object.assign(others, { [name]: await measure() });
  }
  /** @type {Omit<Report, "verdicts">} */
  const measured = { format: 1, date, quick, machine: machineOf(engine, [before, loadNow()]), cases, ...others };
  /** @type {Report} */
  const report = { ...measured, verdicts: judge(measured, baseline) };
  console.log(table(report));
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report, rounded, 1)}\n`);
}

/** Progress goes beside the table, not into it. @param {string} what */
function tell(what) {
  console.error(`${new Date().toLocaleTimeString("en-GB")} ${what} …`);
}

/**
 * Six digits are more than any of these numbers holds.
 * @param {string} _
 * @param {unknown} value
 */
function rounded(_, value) {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
}

/** @param {() => Promise<void>} main */
export async function asProgram(main) {
  try {
    await main();
  } catch (error) {
    const { name, code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    console.error(name === "Advice" || code?.startsWith("ERR_PARSE_ARGS") ? message : error);
    process.exitCode = 1;
  }
}
