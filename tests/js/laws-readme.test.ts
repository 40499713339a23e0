/** The examples of the README are run, and print what the README says they print. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { outline } from "./laws/docs.js";
import { STORIES_MISSING, storiesPath, storiesPresent } from "./support/stories.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
const LANGUAGES: Readonly<Record<string, string>> = { js: "module", cjs: "commonjs" };

const blocks = outline(readFileSync(join(ROOT, "README.md"), "utf8")).code.map((block) => {
  const end = block.indexOf("\n");
  return { language: block.slice(0, end), text: block.slice(end + 1) };
});

/** The model that the examples load by its files' names. */
const MODEL_FILE = /\b(stories260K|tok512)\.bin\b/g;

function run(args: readonly string[]): { stdout: string; stderr: string } {
  const { FORCE_COLOR: _f, NODE_OPTIONS: _o, ...env } = process.env;
  // In this folder the package's own name leads to what it exports.
  const terminal = { NO_COLOR: "1", COLUMNS: "100", TERM: "xterm" };
  const options = { cwd: ROOT, env: { ...env, ...terminal }, encoding: "utf8" } as const;
  const { stdout, stderr } = spawnSync(process.execPath, args, options);
  // Node 22 remarks that require() of an ES module is new to it.
  return { stdout, stderr: stderr.replace(/^.*(ExperimentalWarning|--trace-warnings).*\n/gm, "") };
}

describe("examples of README.md", () => {
  const examples = blocks.flatMap(({ language, text }, i) => {
    const printed = blocks[i + 1];
    const isCommand = language === "sh" && text.startsWith("npx lookback ") && printed?.language === "text";
    return language in LANGUAGES || isCommand ? [{ name: `${i + 1} (${language})`, language, text, printed }] : [];
  });

  test("there are some", () => expect(examples.length).toBeGreaterThan(4));
  test("and some of the command", () => expect(examples.some(({ language }) => language === "sh")).toBe(true));

  for (const { name, language, text, printed } of examples) {
    const needsModel = text.search(MODEL_FILE) >= 0;
    const title = `block ${name} prints what stands below it`;
    if (needsModel && !storiesPresent) {
      test.skip(`${title}: ${STORIES_MISSING}`, () => {});
      continue;
    }
    test(title, () => {
      expect(printed?.language).toBe("text");
      const own = text.replace(MODEL_FILE, (file) => storiesPath(file));
      const command = () => Array.from(own.matchAll(/"([^"]*)"|\S+/g), ([word, quoted]) => quoted ?? word).slice(2);
      const { stdout, stderr } =
        language === "sh"
          ? run([join(ROOT, "dist/cli/lookback.js"), ...command()])
          : run([`--input-type=${LANGUAGES[language]}`, "--eval", own]);
      expect(stderr).toBe("");
      expect(stdout.trimEnd()).toBe(printed!.text);
    });
  }
});
