/** The command `lookback`, run as a user runs it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { lookback } from "./support/command.ts";
import { gpt2Shapes, randomTensors, VOCABULARY, writeFolder } from "./support/model-folders.ts";
import { ROOT } from "./support/process.ts";
import { golden, STORIES_MISSING, storiesPath, storiesPresent } from "./support/stories.ts";

const CONFIG = { model_type: "gpt2", vocab_size: VOCABULARY, n_embd: 64, n_head: 4, n_layer: 4, n_positions: 8192 };
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lookback-cli-"));
  writeFolder(folder, { config: CONFIG, tensors: randomTensors(gpt2Shapes(CONFIG, "transformer."), 2) });
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("stories260K", () => {
  if (!storiesPresent) {
    test.skip(STORIES_MISSING, () => {});
    return;
  }
  const { cases, attention } = golden();
  const files = [storiesPath("stories260K.bin"), "--tokenizer", storiesPath("tok512.bin")];

  test("generate prints the prompt and what follows", async () => {
    const { prompt, text, ids, promptIds } = cases[1]!;
    const count = String(ids.length - promptIds.length);
    const { stdout, stderr, exitCode } = await lookback("generate", ...files, prompt, "--max-tokens", count);
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: `${text}\n`, stderr: "", exitCode: 0 });
  });

  test("generate --json prints ids and stats, and the candidates asked for", async () => {
    const { prompt, ids, promptIds } = cases[2]!;
    const { stdout } = await lookback("generate", ...files, prompt, "-n", "9", "--json", "--candidates", "3");
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ prompt, promptIds, finish: "length", stats: { newTokens: 9 } });
    expect(result.ids).toEqual(ids.slice(promptIds.length, promptIds.length + 9));
    expect(result.steps.map((step: { candidates: { id: number }[] }) => step.candidates[0]!.id)).toEqual(result.ids);
  });

  test("generate takes an empty prompt, which begins a new text, and one in any script", async () => {
    expect((await lookback("generate", ...files, "", "-n", "5")).stdout).toBe("Once upon a time,\n");
    const { stdout } = await lookback("generate", ...files, "-n", "3", "--", "-从前🎈");
    expect(stdout.startsWith("-从前🎈")).toBe(true);
  });

  test("generate --stop ends before the text", async () => {
    const { stdout } = await lookback("generate", ...files, "Once upon a time", "--stop", " girl");
    expect(stdout).toBe("Once upon a time, there was a little\n");
  });

  test("attend --json gives llama2.c's maps", async () => {
    const { stdout } = await lookback("attend", ...files, attention.prompt, "--layer", "all", "--json");
    const { ids, tokens, weights } = JSON.parse(stdout);
    expect([ids, tokens]).toEqual([attention.ids, ["<s>", "Once", " upon", " a", " time"]]);
    let compared = 0;
    attention.att.forEach((layers, query) => {
      layers.forEach((heads, layer) => {
        heads.forEach((keys, head) => {
          const row: number[] = weights[layer][head][query];
          for (const [key, weight] of row.entries()) expect(Math.abs(weight - (keys[key] ?? 0))).toBeLessThan(1e-4);
          compared += row.length;
        });
      });
    });
    expect(compared).toBe(5 * 5 * 5 * 8);
  });

  test.each([
    [0, 0],
    [2, 5],
    [4, 7],
  ])("attend draws layer %p, head %p with llama2.c's percents", async (layer, head) => {
    const { stdout } = await lookback("attend", ...files, attention.prompt, "--layer", `${layer}`, "--head", `${head}`);
    const lines = stdout.split("\n");
    expect(lines[0]).toContain(`layer ${layer} · head ${head}`);
    expect(lines[1]!.trim().split(/\s+/)).toEqual(["<s>", "Once", "upon", "a", "time"]);
    attention.att.forEach((layers, query) => {
      // Behind the row's name: shade and percent, or a dot for what is masked.
      const cells = Array.from(lines[2 + query]!.slice(7).matchAll(/\d+|·/g), ([cell]) => cell);
      const wanted = layers[layer]![head]!;
      expect(cells).toHaveLength(attention.ids.length);
      cells.forEach((cell, key) => {
        if (key > query) expect(cell).toBe("·");
        else expect(Math.abs(Number(cell) - 100 * wanted[key]!)).toBeLessThan(0.51);
      });
    });
  });

  test("inspect tells sizes and memory", async () => {
    const { stdout } = await lookback("inspect", ...files, "--context", "128");
    for (const part of [
      "260,032",
      "8 of 8, 4 for keys and values",
      "128 tokens, cache int8",
      "keyWeight",
      "[32, 64] × 5",
    ])
      expect(stdout).toContain(part);
    const json = JSON.parse((await lookback("inspect", ...files, "--json")).stdout);
    expect(json).toMatchObject({ parameters: 260032, context: 512, config: { heads: 8, kvHeads: 4 } });
  });
});

describe("a folder", () => {
  test("is continued, the same for the same seed", async () => {
    const run = () =>
      lookback("generate", folder, "hello", "-n", "12", "--top-k", "40", "--seed", "3", "--cache", "int8");
    const [first, second] = await Promise.all([run(), run()]);
    expect(first.exitCode).toBe(0);
    expect(first.stdout.startsWith("hello")).toBe(true);
    expect(first.stdout).toBe(second.stdout);
  });

  test("takes less memory where its weights are int8", async () => {
    const weights = async (...more: string[]): Promise<number> =>
      JSON.parse((await lookback("inspect", folder, "--json", ...more)).stdout).memory.weights;
    expect(await weights("--dtype", "int8")).toBeLessThan(0.8 * (await weights()));
  });

  test("Ctrl-C ends it between two tokens: no message, exit code 130", async () => {
    const child = lookback("generate", folder, "hello", "-n", "8000");
    let seen = 0;
    child.stdout.on("data", (text: Buffer) => {
      const before = seen;
      seen += text.length;
      if (seen > 20 && before <= 20) child.kill("SIGINT");
    });
    const { exitCode, stdout, stderr } = await child;
    expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: "" });
    expect(stdout.endsWith("\n")).toBe(true);
    expect(stdout.length).toBeGreaterThan(20);
  });
});

test("Ctrl-C ends attend in the middle of a long text, too", async () => {
  const child = lookback("attend", folder, "hello ".repeat(1300), "--head", "0");
  setTimeout(() => child.kill("SIGINT"), 600);
  const { exitCode, signal, stdout, stderr } = await child;
  expect({ stdout, stderr }).toEqual({ stdout: "", stderr: "" });
  // While it still loads it ends by itself.
  expect(signal ?? exitCode).toBe(signal === undefined ? 130 : "SIGINT");
});

describe("what goes wrong is one line", () => {
  const wrong: [string, number, RegExp, () => string[]][] = [
    ["a model that is not there", 1, /config\.json is missing: no such file/, () => ["inspect", "/nowhere"]],
    [
      "a layer that is not there",
      1,
      /layers must be 'all' or distinct numbers from 0 to 3/,
      () => [...["attend", folder, "hello", "--layer", "7"]],
    ],
    ["an unknown command", 2, /unknown command 'atend'.*attend/, () => ["atend"]],
    [
      "an unknown option",
      2,
      /unknown option '--max-token'.*--max-tokens/,
      () => ["generate", "x", "y", "--max-token", "3"],
    ],
    ["a missing argument", 2, /missing required argument 'prompt'/, () => ["generate", folder]],
    [
      "a count that is a word",
      2,
      /--max-tokens.*'many' is invalid.*whole number/,
      () => [...["generate", folder, "hello", "-n", "many"]],
    ],
    [
      "a share above 1",
      2,
      /--top-p.*'2' is invalid.*above 0 and at most 1/,
      () => ["generate", folder, "hello", "--top-p", "2"],
    ],
    ["a share below 0", 2, /--min-p.*from 0 to 1/, () => ["generate", folder, "hello", "--min-p", "-0.1"]],
    ["a penalty of 0", 2, /penalty.*> 0/, () => ["generate", folder, "hello", "--repetition-penalty", "0"]],
    ["an empty stop string", 2, /--stop.*not be empty/, () => ["generate", folder, "hello", "--stop", ""]],
    [
      "layers that are none",
      2,
      /--layer.*whole number.*\(0,2\), or all/,
      () => ["attend", folder, "x", "--layer", "0,"],
    ],
    [
      "candidates for nobody",
      2,
      /--candidates belongs to --json/,
      () => ["generate", folder, "x", "--candidates", "3"],
    ],
    ["a text that looks like an option", 2, /'-hello'.*behind --/, () => ["generate", folder, "-hello"]],
    ["no model's name", 1, /folder's path or URL.*received ""/, () => ["generate", "", "hello"]],
    ["a host that does not answer", 1, /fetch failed \(.+\)/, () => ["inspect", "http://127.0.0.1:1/x"]],
    [
      "a .bin file's URL with a query",
      1,
      /tokenizer\.json is no tokenizer\.bin/,
      () => [...["inspect", "http://127.0.0.1:1/a.bin?download=true", "--tokenizer", join(folder, "tokenizer.json")]],
    ],
    [
      "a name that a terminal would obey",
      1,
      /\uFFFD\[31m x\/config\.json is missing/,
      () => ["inspect", "/no/\u001b[31m\nx"],
    ],
    ["a cache of another kind", 2, /--cache.*f32, int8/, () => ["generate", folder, "hello", "--cache", "f16"]],
    ["a .bin file alone", 2, /name its tokenizer with --tokenizer/, () => ["inspect", "x.bin"]],
    ["a tokenizer too many", 2, /belongs to a \.bin file/, () => ["inspect", folder, "--tokenizer", "x.bin"]],
  ];

  test.each(wrong)("%s: exit code %p", async (_what, code, message, args) => {
    const { exitCode, stdout, stderr } = await lookback(...args());
    expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^lookback: [^\n]+\n$/);
  });
});

describe("--help", () => {
  test.each([[], ["generate"], ["attend"], ["inspect"]])("of %j shows examples", async (...command) => {
    const { exitCode, stdout, stderr } = await lookback(...command, "--help");
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toContain("Examples:\n  $ lookback ");
  });

  test("--version is the package's", async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect((await lookback("--version")).stdout).toBe(`${version}\n`);
  });

  test("without a command it is shown, and that is wrong use", async () => {
    const { exitCode, stderr } = await lookback();
    expect(exitCode).toBe(2);
    expect(stderr).toContain("Usage: lookback");
  });
});
