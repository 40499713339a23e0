/**
 * npm run docs:rules: writes RULES.md, a table of what is promised, the tests that hold it, and how they went. It reads the reports that
 * npm test leaves in build/; the JavaScript tests are run where theirs is missing.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { testNode } from "../../bindings/toolchain/nodes.mjs";
import { buildFolder, root } from "../../bindings/toolchain/paths.mjs";
import { jest } from "./programs.mjs";

/** @type {[rule: string, meaning: string][]} */
export const RULES = [
  ["R1", "Layouts: [B, H, L, D], [B, L, H·D] and [L, H·D], read in place; values may be of another width than keys."],
  ["R2", "Scale: 1/√headDim, or any finite number, 0 and negatives included."],
  ["R3", "Boolean masks: 1 = may attend; broadcast from the right to [B, H, Lq, Lk]; floats as a mask are refused."],
  ["R4", "Bias: added after the cap, broadcast likewise; −∞ masks, a very negative finite number does not."],
  ["R5", "Padding: valid prefixes by `keyLengths`, or any places by `keyMask`."],
  ["R6", "Position offset: query i stands at i + offset; where it would be a guess it must be said."],
  ["R7", "Window: so many keys to the left and to the right of the position."],
  ["R8", "Intersection: a key is visible iff every restriction allows it, bit for bit like one mask."],
  ["R9", "Nothing visible: output and weights 0, logSumExp −∞ (or the sink); never NaN."],
  ["R10", "No influence: whatever masked places hold, NaN and ±∞ too, changes no bit."],
  ["R11", "Grouped queries: head h reads kv head ⌊h·Hkv/H⌋."],
  ["R12", "Looking: scores, capped, masked or softmax weights per head; asking changes no bit of the output."],
  ["R13", "Summaries: top keys, entropy, distance and a map in one pass, without L² memory."],
  ["R14", "Merging: attention over any partition of the keys, merged by logSumExp, is attention over all."],
  ["R15", "Determinism: the same bits for the same call; a batch row alone has the bits it has in a batch."],
  ["R16", "Cache: append-then-attend is attention without a cache, in any chunking; rolling and int8 too."],
  ["R17", "Positions: rotary with its scalings, ALiBi, sinusoidal."],
  ["R18", "Sinks: a logit per head that joins the denominator and has no value."],
  ["R19", "Dropout: the same mask whatever the tiling or the threads."],
  ["R20", "Gradients: by recomputation, within 1e-4 of float64."],
  ["R21", "Empty: no queries give an empty output, no keys give zero rows."],
  [
    "R22",
    "Accuracy: off from float64 by at most (2e-6 + 2⁻²³·S) of the largest visible value, S the largest Σ of products' sizes.",
  ],
  ["R23", "Large: memory beyond inputs and outputs is O(heads · tile); what does not fit is refused with its bytes."],
  ["M1", "A layer's sizes fit, or the error shows both numbers."],
  ["M2", "Self-attention, cross-attention, projected memory, steps of a cache."],
  ["M3", "Parameters by PyTorch's names; BERT, GPT-2, Llama and Keras layouts load and save."],
  ["M4", "Equal to PyTorch's layer on the same numbers."],
  ["B1", "Inputs: { data, dims } of any realm, views and shared memory included, or tensors in wasm memory."],
  ["B2", "Outputs: plain copies, or written where `out` says."],
  ["B3", "Lifetimes: dispose is idempotent, use after it throws, memory is accounted for."],
  ["B4", "Errors: a stable code and a message to act on; nothing is half-written, the instance goes on."],
  ["B5", "Loading: nothing happens at import; the variant is probed before anything is fetched."],
  ["B6", "Long work: off the main thread, with a signal and progress."],
];

/** Promised, and not built yet. @type {string[]} */
export const NOT_YET = [];

const NUMBERS = /\b([RMB])(\d+)(?:[–-][RMB]?(\d+))?/g;

/**
 * The rules that a test's name begins with: "R1–R3, B4: …" or R8_to_R22_….
 * @param {string} title
 * @returns {string[]}
 */
export function rulesOf(title) {
  const words = title.replaceAll("_to_", "–").replaceAll("_", " ");
  const head = /^(?:[RMB]\d+(?:[–-][RMB]?\d+)?(?:, | and | )?)+(?=:| |$)/.exec(words)?.[0] ?? "";
  const found = [];
  for (const [, letter, from, to] of head.matchAll(NUMBERS)) {
    for (let n = Number(from); n <= Number(to ?? from); n++) found.push(`${letter}${n}`);
  }
  return found;
}

/** @typedef {{ file: string, title: string, passed: number, failed: number, skipped: number }} Outcome */

/** One line for the tests of both variants. */
class Outcomes {
  /** @type {Map<string, Outcome>} */
  #all = new Map();

  /**
   * @param {string} file
   * @param {string} title
   * @param {"passed" | "failed" | "skipped"} result
   */
  add(file, title, result) {
    const key = `${file}\n${title}`;
    const outcome = this.#all.get(key) ?? { file, title, passed: 0, failed: 0, skipped: 0 };
    outcome[result]++;
    this.#all.set(key, outcome);
  }

  /** @param {string} rule */
  of(rule) {
    return [...this.#all.values()]
      .filter(({ title }) => rulesOf(title).includes(rule))
      .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.title < b.title ? -1 : 1));
  }
}

/** @param {string} file */
const readJson = (file) => JSON.parse(readFileSync(file, "utf8"));

/** @returns {Promise<Outcomes>} */
async function collect() {
  const outcomes = new Outcomes();
  const report = join(buildFolder, "jest-js.json");
  if (!existsSync(report)) await jest(testNode("relaxed") ?? process.execPath, "js");
  for (const { name, assertionResults } of readJson(report).testResults) {
    for (const { title, status } of assertionResults) {
      const result = status === "passed" || status === "failed" ? status : "skipped";
      outcomes.add(relative(root, name), title, result);
    }
  }
  for (const preset of ["native-debug", "wasm-simd", "wasm-relaxed"]) {
    const file = join(buildFolder, preset, "gtest.json");
    if (!existsSync(file)) continue;
    for (const { testsuite } of readJson(file).testsuites) {
      for (const test of testsuite) {
        const title = test.name
          .replace(/_to_(?=[RMB]\d)/, "–")
          .replace(
            /^((?:[RMB\d–]+_)+)/,
            (/** @type {string} */ head) => `${head.slice(0, -1).replaceAll("_", ", ")}: `,
          );
        const result = test.failures ? "failed" : test.result === "COMPLETED" ? "passed" : "skipped";
        outcomes.add(`tests/cpp/${basename(test.file)}`, title.replaceAll("_", " "), result);
      }
    }
  }
  return outcomes;
}

/** @param {Outcome[]} outcomes */
function judged(outcomes) {
  const count = (/** @type {(outcome: Outcome) => boolean} */ is) => outcomes.filter(is).length;
  const failed = count((outcome) => outcome.failed > 0);
  if (failed > 0) return `✘ ${failed} failed`;
  return count(({ passed }) => passed > 0) > 0 ? "✔ passed" : "not yet";
}

/** @param {Outcomes} outcomes */
function write(outcomes) {
  const quoted = (/** @type {string} */ text) => text.replace(/[|*<[\]]/g, "\\$&");
  const table = RULES.map(([rule, meaning]) => {
    const own = outcomes.of(rule);
    return `| ${own.length > 0 ? `[${rule}](#${rule.toLowerCase()})` : rule} | ${meaning} | ${own.length} | ${judged(own)} |`;
  });
  const details = RULES.flatMap(([rule]) => {
    const own = outcomes.of(rule);
    if (own.length === 0) return [];
    const files = [...new Set(own.map(({ file }) => file))];
    const lists = files.map((file) => {
      const lines = own
        .filter((outcome) => outcome.file === file)
        .map((outcome) => `- ${judged([outcome]).slice(0, 1)} ${quoted(outcome.title)}`);
      return `[${file}](${file})\n\n${lines.join("\n")}\n`;
    });
    return [`### ${rule}\n`, ...lists];
  });
  return [
    "# Rules and the tests that hold them\n",
    "What the package promises, by number; tests are named by the rules they hold. Written by `npm run docs:rules` from the reports of",
    "`npm test`: a test counts once, whether it ran on one wasm variant or on several, natively or in wasm.\n",
    "| Rule | Promise | Tests | Result |",
    "|---|---|--:|---|",
    ...table,
    "",
    ...details,
  ].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const outcomes = await collect();
  writeFileSync(join(root, "RULES.md"), `${write(outcomes).trimEnd()}\n`);
  const failed = RULES.filter(([rule]) => judged(outcomes.of(rule)).startsWith("✘"));
  const without = RULES.filter(([rule]) => outcomes.of(rule).length === 0).map(([rule]) => rule);
  console.log(`RULES.md: ${RULES.length} rules; without a test: ${without.join(", ") || "none"}`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}
