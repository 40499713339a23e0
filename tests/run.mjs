/** npm test: every test there is, one after another, and one line at the end that adds them up. `npm test -- jest` runs those named so. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findTools } from "../bindings/toolchain/find.mjs";
import { installedNodes, testNode } from "../bindings/toolchain/nodes.mjs";
import { root } from "../bindings/toolchain/paths.mjs";
import { ctest, jest, nodeTest, start } from "./verbs/programs.mjs";

const system = process.execPath;
const newest = installedNodes().at(-1);
const relaxed = testNode("relaxed");

/** @type {import("./verbs/programs.mjs").Count} */
const none = { passed: 0, failed: 0, skipped: 0 };

/** @param {string} reason */
function skip(reason) {
  console.log(`skipped: ${reason}`);
  return { ...none, skipped: 1 };
}

/** @param {string} folder */
function testFiles(folder) {
  const names = existsSync(join(root, folder)) ? readdirSync(join(root, folder)) : [];
  return names.filter((name) => name.endsWith(".test.mjs")).map((name) => join(root, folder, name));
}

const noNode = "Node.js 22 or newer is not at hand, and tests/nodes has Linux x86-64 programs only";

/** @type {[name: string, run: () => Promise<import("./verbs/programs.mjs").Count> | import("./verbs/programs.mjs").Count][]} */
const runs = [
  ["C++, native with sanitizers", () => ctest("native-debug")],
  ["C++, wasm simd", () => ctest("wasm-simd")],
  ["C++, wasm relaxed", () => (relaxed ? ctest("wasm-relaxed") : skip(noNode))],
  ["Jest, system's Node", () => jest(system, "js")],
  ["Jest, newest Node", () => (newest ? jest(newest, "js") : skip(noNode))],
  ...[system, ...installedNodes()].map(
    (node) =>
      /** @type {typeof runs[number]} */ ([
        `smoke, ${node === system ? "system's Node" : node.match(/node\d+/)?.[0]}`,
        () => nodeTest(node, testFiles("tests/smoke")),
      ]),
  ),
  ["bench", () => nodeTest(system, testFiles("tests/bench"))],
  ["package", () => nodeTest(system, testFiles("tests/package"))],
  ["frameworks", () => nodeTest(system, testFiles("tests/frameworks"))],
  ["browser", () => jest(system, "browser")],
];

const wanted = process.argv.slice(2);
const chosen =
  wanted.length === 0
    ? runs
    : runs.filter(([name]) => wanted.some((word) => name.toLowerCase().includes(word.toLowerCase())));

const versions = await Promise.all(
  [system, ...installedNodes()].map(async (node) =>
    (await start(node, ["--version"], { capture: true })).output.trim(),
  ),
);
const { chromium, firefox, miniBrowser } = findTools();
/** @type {[name: string, program: string | undefined][]} */
const browsers = [
  ["Chromium", chromium],
  ["Firefox", firefox],
  ["WebKitGTK", miniBrowser],
];
const told = await Promise.all(
  browsers.map(async ([name, program]) => {
    if (!program) return `no ${name}`;
    const { output } = await start(program, ["--version"], { capture: true });
    return `${name} ${output.match(/\d+(\.\d+)+/)?.[0] ?? "of unknown version"}`;
  }),
);
console.log(`Node.js: ${versions[0]} (system), ${versions.slice(1).join(", ") || "no others"}; ${told.join(", ")}`);

const total = { ...none };
/** @type {string[]} */
const lines = [];
for (const [name, run] of chosen) {
  console.log(`\n— ${name}`);
  const begin = Date.now();
  const count = await run();
  for (const key of /** @type {const} */ (["passed", "failed", "skipped"])) total[key] += count[key];
  const seconds = ((Date.now() - begin) / 1000).toFixed(1);
  lines.push(`${count.failed > 0 ? "✘" : "✔"} ${name}: ${counted(count)} (${seconds} s)`);
  console.log(lines.at(-1));
}
console.log(`\n${lines.join("\n")}\n`);
console.log(counted(total));
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;

/** @param {import("./verbs/programs.mjs").Count} count */
function counted({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
