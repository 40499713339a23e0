/** Every promise has a test that names it, and RULES.md says so. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { NOT_YET, RULES, rulesOf } from "../verbs/rules.mjs";

const root = new URL("../../", import.meta.url);
const here = new URL("tests/js/", root);

/** Names of tests in the source: whatever string begins with rules and a colon. */
function namedRules(): Set<string> {
  const found = new Set<string>();
  for (const file of readdirSync(here)) {
    if (!file.endsWith(".test.ts") || file === "rules.test.ts") continue;
    for (const [, title] of readFileSync(new URL(file, here), "utf8").matchAll(/["'`]([RMB]\d[^"'`\n]*?):/g)) {
      for (const rule of rulesOf(`${title}:`)) found.add(rule);
    }
  }
  return found;
}

test("every rule of R1–R23, M1–M4 and B1–B6 has a test that names it", () => {
  const wanted = RULES.map(([rule]) => rule).filter((rule) => !NOT_YET.includes(rule));
  expect(wanted).toHaveLength(23 + 4 + 6);
  const named = namedRules();
  expect(wanted.filter((rule) => !named.has(rule))).toEqual([]);
});

test("a name's rules are those it begins with", () => {
  expect(rulesOf("R1–R3, B4: a name")).toEqual(["R1", "R2", "R3", "B4"]);
  expect(rulesOf("R5 R16: test_attention")).toEqual(["R5", "R16"]);
  expect(rulesOf("R8_to_R10_hold_for_any_shape")).toEqual(["R8", "R9", "R10"]);
  expect(rulesOf("M4: what R9 says")).toEqual(["M4"]);
  expect(rulesOf("a row that R9 means")).toEqual([]);
  expect(rulesOf("R: nothing")).toEqual([]);
});

test("RULES.md tells of every rule, of tests that passed, and of files that are there", () => {
  const text = readFileSync(new URL("RULES.md", root), "utf8");
  for (const [rule, meaning] of RULES) {
    const row = text.split("\n").find((line) => new RegExp(`^\\| \\[?${rule}\\b`).test(line));
    expect(row).toContain(meaning);
    expect({ rule, passed: row!.includes("✔ passed") }).toEqual({ rule, passed: !NOT_YET.includes(rule) });
  }
  for (const [, file] of text.matchAll(/^\[(tests\/[^\]]+)\]/gm)) {
    expect({ file, exists: existsSync(new URL(file!, root)) }).toEqual({ file, exists: true });
  }
  expect(text).not.toContain("✘");
});
