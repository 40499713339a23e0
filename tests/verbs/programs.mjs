/** Runs test programs in this terminal and counts what they report. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildFolder, root } from "../../bindings/toolchain/paths.mjs";

/** @typedef {{ passed: number, failed: number, skipped: number }} Count */

/**
 * @param {string} command
 * @param {string[]} args
 * @param {{ capture?: boolean, env?: Record<string, string> }} [options]
 * @returns {Promise<{ code: number, output: string }>}
 */
export function start(command, args, { capture = false, env = {} } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ["ignore", capture ? "pipe" : "inherit", capture ? "pipe" : "inherit"],
    });
    let output = "";
    child.stdout?.on("data", (data) => (output += data));
    child.stderr?.on("data", (data) => (output += data));
    child.on("error", (error) => {
      console.error(`${command}: ${error.message}`);
      resolve({ code: 1, output });
    });
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

/**
 * A program that ended badly without naming a failed test crashed: that is a failure, too. So is one that ran nothing.
 * @param {number} code
 * @param {Count | undefined} count
 * @returns {Count}
 */
function judged(code, count) {
  if (count === undefined) return { passed: 0, failed: 1, skipped: 0 };
  const { passed, failed, skipped } = count;
  if (failed === 0 && (code !== 0 || passed + skipped === 0)) return { passed, failed: 1, skipped };
  return count;
}

/** @param {string} file */
function readReport(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

/**
 * The C++ tests of a CMake preset.
 * @param {string} preset
 */
export async function ctest(preset) {
  const report = join(buildFolder, preset, "gtest.json");
  rmSync(report, { force: true });
  const { code } = await start("ctest", ["--preset", preset]);
  const result = readReport(report);
  if (!result) return judged(code, undefined);
  const count = { passed: 0, failed: 0, skipped: 0 };
  for (const suite of result.testsuites) {
    for (const test of suite.testsuite) {
      if (test.failures) ++count.failed;
      else if (test.result === "COMPLETED") ++count.passed;
      else ++count.skipped;
    }
  }
  return judged(code, count);
}

/**
 * @param {string} node
 * @param {string} project
 */
export async function jest(node, project) {
  const report = join(buildFolder, `jest-${project}.json`);
  rmSync(report, { force: true });
  const { code } = await start(
    node,
    [
      "--experimental-vm-modules",
      "--disable-warning=ExperimentalWarning",
      join(root, "node_modules/jest/bin/jest.js"),
      `--selectProjects=${project}`,
      "--reporters=default",
      `--reporters=${join(root, "tests/verbs/jest-report.mjs")}`,
      "--testTimeout=60000",
    ],
    { env: { LOOKBACK_JEST_REPORT: report } },
  );
  const result = readReport(report);
  return judged(
    code,
    result && {
      passed: result.numPassedTests,
      // A file that can't be loaded has no tests to fail.
      failed: result.numFailedTests + result.numRuntimeErrorTestSuites,
      skipped: result.numPendingTests + result.numTodoTests,
    },
  );
}

/**
 * Tests of Node's own runner; the output is shown when one fails.
 * @param {string} node
 * @param {string[]} files
 * @param {Record<string, string>} [env]
 */
export async function nodeTest(node, files, env) {
  const { code, output } = await start(node, ["--test", "--test-reporter=tap", ...files], { capture: true, env });
  const number = (/** @type {string} */ name) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(output)?.[1]);
  const passed = number("pass");
  const count = judged(
    code,
    Number.isNaN(passed)
      ? undefined
      : { passed, failed: number("fail") + number("cancelled"), skipped: number("skipped") + number("todo") },
  );
  if (count.failed > 0) console.log(output);
  else
    for (const [line] of output.matchAll(/^# (?!tests|suites|pass|fail|cancelled|skipped|todo|duration|Subtest).*$/gm))
      console.log(line.slice(2));
  return count;
}
