/** npm run bench:readme: writes the READMEs' sections on performance from tests/bench/results. `-- --check` only compares. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Advice } from "../../bindings/toolchain/shell.mjs";
import { performanceSection } from "./report/readme.mjs";
import { asProgram } from "./whole-run.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const readmes = /** @type {const} */ ([
  ["README.md", "en"],
  ["README.zh-CN.md", "zh"],
]);
const BEGIN = "<!-- performance: written by npm run bench:readme -->";
const END = "<!-- end of performance -->";
const results = ["node26", "node24", "node22", "chromium"];

/** @typedef {import("./core/types.ts").Report} Report */

/** The sections as they should be: [file, whole text now, whole text wanted]. */
export function readmeTexts() {
  const reports = results.flatMap((name) => {
    const file = join(root, "tests/bench/results", `${name}.json`);
    if (!existsSync(file)) return [];
    const report = /** @type {Report} */ (JSON.parse(readFileSync(file, "utf8")));
    if (report.quick) throw new Advice(`${name}.json is of a --quick run: nothing to publish`);
    return [report];
  });
  return readmes.map(([file, language]) => {
    const now = readFileSync(join(root, file), "utf8");
    const [begin, end] = [now.indexOf(BEGIN), now.indexOf(END)];
    if (begin < 0 || end < begin) throw new Advice(`${file} has no "${BEGIN}" with "${END}" after it`);
    const [report, ...others] = reports;
    const section = report ? `\n\n${performanceSection(report, others, language)}\n\n` : "\n";
    return { file, now, wanted: now.slice(0, begin + BEGIN.length) + section + now.slice(end) };
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await asProgram(async () => {
    const stale = readmeTexts().filter(({ now, wanted }) => now !== wanted);
    if (process.argv.includes("--check")) {
      if (stale.length > 0) throw new Advice(`Not as npm run bench:readme writes it: ${stale.map((one) => one.file)}`);
      return;
    }
    for (const { file, wanted } of stale) writeFileSync(join(root, file), wanted);
    console.log(stale.length > 0 ? `Written: ${stale.map((one) => one.file).join(", ")}` : "Nothing to change");
  });
