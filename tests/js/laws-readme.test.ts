/** The examples of the README are run, and print what the README says they print. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { outline } from "./laws/docs.js";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
const LANGUAGES: Readonly<Record<string, string>> = { js: "module", cjs: "commonjs" };

const blocks = outline(readFileSync(join(ROOT, "README.md"), "utf8")).code.map((block) => {
  const end = block.indexOf("\n");
  return { language: block.slice(0, end), text: block.slice(end + 1) };
});

describe("examples of README.md", () => {
  const examples = blocks.flatMap(({ language, text }, i) =>
    language in LANGUAGES ? [{ name: `${i + 1} (${language})`, language, text, printed: blocks[i + 1] }] : [],
  );

  test("there are some", () => expect(examples.length).toBeGreaterThan(4));

  test.each(examples)("block $name prints what stands below it", ({ language, text, printed }) => {
    expect(printed?.language).toBe("text");
    const { FORCE_COLOR: _f, NODE_OPTIONS: _o, ...env } = process.env;
    // In this folder the package's own name leads to what it exports.
    const args = [`--input-type=${LANGUAGES[language]}`, "--eval", text];
    const { stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: ROOT,
      env: { ...env, NO_COLOR: "1" },
      encoding: "utf8",
    });
    // Node 22 remarks that require() of an ES module is new to it.
    expect(stderr.replace(/^.*(ExperimentalWarning|--trace-warnings).*\n/gm, "")).toBe("");
    expect(stdout.trimEnd()).toBe(printed!.text);
  });
});
