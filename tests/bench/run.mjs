/** npm run bench: everything in one run, as one table, and with --json FILE as one file. */
import { readFileSync, writeFileSync } from "node:fs";
import { settingsOf } from "./core/measure.mjs";
import { runCaseApart } from "./node/child.mjs";
import { memory, sizes, start } from "./node/extras.mjs";
import { engineOf, loadNow, machineOf } from "./node/machine.mjs";
import { nodeProgram, readOptions } from "./options.mjs";
import { judge } from "./report/judge.mjs";
import { caseReport } from "./report/summarise.mjs";
import { table } from "./report/table.mjs";

/** @typedef {import("./core/types.ts").Report} Report */

/** @param {import("./options.mjs").Options} options */
async function measure(options) {
  const { quick } = options;
  const node = nodeProgram(options.node);
  const engine = engineOf(node);
  const before = loadNow();
  const began = new Date();
  const tell = (/** @type {string} */ what) => console.error(`${new Date().toLocaleTimeString("en-GB")} ${what} …`);
  const reports = [];
  for (const one of options.cases) {
    tell(one.title);
    const workloads = [...((quick && one.quick) || one.workloads)];
    const names = options.contestants.map(({ id }) => id);
    const raw = await runCaseApart(node, { workloads, contestants: names, settings: settingsOf(quick) });
    reports.push(caseReport(one, workloads, raw));
  }
  const wanted = (/** @type {string} */ name) => {
    if (!options.extras.includes(name)) return false;
    tell(name);
    return true;
  };
  /** @type {Omit<Report, "verdicts">} */
  const measured = {
    format: 1,
    date: began.toISOString(),
    quick,
    cases: reports,
    ...(wanted("memory") && { memory: await memory(node, quick) }),
    ...(wanted("sizes") && { sizes: await sizes() }),
    ...(wanted("start") && { start: await start(node, quick) }),
    machine: machineOf(engine, [before, loadNow()]),
  };
  return measured;
}

async function main() {
  const options = readOptions(process.argv.slice(2));
  if (options.help) {
    console.log(options.helpText);
    return;
  }
  /** @type {Report | undefined} */
  const baseline = options.baseline ? JSON.parse(readFileSync(options.baseline, "utf8")) : undefined;
  const measured = await measure(options);
  /** @type {Report} */
  const report = { ...measured, verdicts: judge(measured, baseline) };
  console.log(table(report));
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report, rounded, 1)}\n`);
}

/**
 * Six digits are more than any of these numbers holds.
 * @param {string} _
 * @param {unknown} value
 */
function rounded(_, value) {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
}

main().catch((error) => {
  console.error(error?.name === "Advice" || error?.code?.startsWith?.("ERR_PARSE_ARGS") ? error.message : error);
  process.exitCode = 1;
});
