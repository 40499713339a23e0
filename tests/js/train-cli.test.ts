/** `lookback train`, run as a user runs it. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { lookback } from "./support/command.ts";
import { noise, sentences } from "./support/corpora.ts";

jest.setTimeout(120_000); // a model learns in it, on whatever machine

const SIZES = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "32", "--batch", "4", "--lr", "0.003"];
const MODEL = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];

let folder: string;
let corpus: string;
const out = (name: string) => join(folder, name);
const curve = (name: string) =>
  readFileSync(join(out(name), "loss.csv"), "utf8")
    .trim()
    .split("\n");
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lookback-train-"));
  corpus = join(folder, "corpus.txt");
  writeFileSync(corpus, sentences(300));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("lookback train", () => {
  test("writes a model that generate reads, a checkpoint, and the loss curve", async () => {
    const run = ["train", corpus, "--out", out("a"), ...SIZES, "--steps", "60", "--evaluate-every", "20"];
    const { stdout, stderr, exitCode } = await lookback(...run, "--sample-every", "30", "--prompt", "the cat");
    expect({ exitCode, stderr: stderr.split("\n")[0] }).toEqual({
      exitCode: 0,
      stderr: expect.stringMatching(
        /^[\d,]+ parameters; [\d,]+ tokens to learn from, [\d,]+ kept back, a vocabulary of \d+$/,
      ),
    });
    expect(stdout).toMatch(/^--- step 30\nthe cat[\s\S]+\n--- step 60\nthe cat[\s\S]+\n$/);
    expect(stderr).toMatch(/\nstep 20\/60 loss \d\.\d+ val \d\.\d+ [\d,]+ tok\/s \d+ s left\n/);
    expect(stderr).toMatch(/\nDone after step 60: loss \d\.\d+, validation \d\.\d+ \(\d\.\d+ bits per character\)\.\n/);
    expect(readdirSync(out("a")).sort()).toEqual([...MODEL, "checkpoint.safetensors", "loss.csv", "run.json"].sort());

    const [header, ...rows] = curve("a");
    expect(header).toBe("step,loss,validation");
    const numbers = rows.map((row) => row.split(","));
    expect(numbers.map(([step]) => Number(step))).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
    expect(numbers.filter(([, , validation]) => validation !== "").map(([step]) => step)).toEqual(["20", "40", "60"]);
    expect(Number(numbers[59]![1])).toBeLessThan(0.8 * Number(numbers[0]![1]));

    const generated = await lookback("generate", out("a"), "the", "-n", "10");
    expect(generated.exitCode).toBe(0);
    expect(generated.stdout.length).toBeGreaterThan("the".length + 5);
  });

  test("--json prints one object, and no samples", async () => {
    const sizes = [...SIZES, "--tokenizer", "bpe:270", "--family", "llama", "--kv-heads", "1", "--threads", "2"];
    const run = ["train", corpus, corpus, "--out", out("b"), ...sizes, "--steps", "5", "--sample-every", "5", "--json"];
    const { stdout, exitCode } = await lookback(...run);
    expect(exitCode).toBe(0);
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ steps: 5, model: { family: "llama", kvHeads: 1, layers: 1, vocabSize: 270 } });
    expect(result.validation.loss).toBeGreaterThan(0);
    const endId = JSON.parse(readFileSync(join(out("b"), "config.json"), "utf8")).eos_token_id;
    expect(endId).toBe(269); // two documents
  });

  test("--held-out keeps another text back, and the whole corpus is learnt from", async () => {
    const held = join(folder, "held.txt");
    writeFileSync(held, sentences(20, 4));
    const run = ["train", corpus, "--held-out", held, "--out", out("held"), ...SIZES, "--steps", "3", "--json"];
    const { trainCharacters, validationCharacters, validation } = JSON.parse((await lookback(...run)).stdout);
    expect([trainCharacters, validationCharacters]).toEqual([sentences(300).length, sentences(20, 4).length]);
    expect(validation.tokens).toBe(validationCharacters - 1);
  });

  test("--keep best leaves the model of the lowest validation loss", async () => {
    const small = join(folder, "small.txt");
    writeFileSync(small, noise(500)); // which can be learnt by heart only
    const sizes = [
      "--layers",
      "2",
      "--heads",
      "2",
      "--embed",
      "64",
      "--context",
      "16",
      "--batch",
      "8",
      "--lr",
      "0.003",
    ];
    const run = ["train", small, "--out", out("best"), ...sizes, "--steps", "240", "--evaluate-every", "40"];
    const { stdout, exitCode } = await lookback(...run, "--validation", "0.3", "--keep", "best", "--json");
    expect(exitCode).toBe(0);
    const { validation, lowestValidation, folder: at } = JSON.parse(stdout);
    expect(lowestValidation).toBeLessThan(validation.loss);
    expect(at).toBe(out("best"));
    expect(readdirSync(out("best"))).toEqual(expect.arrayContaining(MODEL));
  });
});

describe("what goes wrong is one line", () => {
  const wrong: [string, number, RegExp, () => string[]][] = [
    ["a corpus that is not there", 1, /ENOENT.*nowhere\.txt/, () => ["/nowhere.txt", "--out", out("x")]],
    ["no folder", 2, /required option '-o, --out/, () => [corpus]],
    ["a folder with a checkpoint", 1, /holds the checkpoint of a run.*--resume/, () => [corpus, "--out", out("a")]],
    ["nothing to go on from", 1, /no checkpoint\.safetensors/, () => [corpus, "--out", out("none"), "--resume"]],
    ["another corpus", 1, /another text/, () => [join(folder, "other.txt"), "--out", out("a"), "--resume"]],
    ["another size", 1, /layers was 1 .* is 2 now/, () => [corpus, "--out", out("a"), "--resume", "--layers", "2"]],
    [
      "a tokenizer that does not exist",
      2,
      /--tokenizer.*characters, or bpe:512/,
      () => [corpus, "-o", "x", "--tokenizer", "bpe"],
    ],
    ["a file that is not UTF-8", 1, /is not UTF-8/, () => [join(folder, "latin.txt"), "--out", out("x")]],
    ["heads that do not divide", 1, /no multiple of 3 heads/, () => [corpus, "--out", out("x"), "--heads", "3"]],
    [
      "what is kept back given twice",
      1,
      /given twice/,
      () => [corpus, "--out", out("x"), "--held-out", corpus, "--validation", "0.1"],
    ],
    ["a share of nothing", 2, /--validation.*from 0 to 1/, () => [corpus, "--out", out("x"), "--validation", "5"]],
  ];
  beforeAll(() => {
    writeFileSync(join(folder, "other.txt"), sentences(300, 9));
    writeFileSync(join(folder, "latin.txt"), Buffer.from([0x61, 0xe9, 0x62]));
  });

  test.each(wrong)("%s: exit code %p", async (_what, code, message, args) => {
    const { exitCode, stdout, stderr } = await lookback("train", ...args());
    expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^lookback: [^\n]+\n$/);
    expect(existsSync(out("x"))).toBe(false);
  });

  test("--help shows examples", async () => {
    const { exitCode, stdout } = await lookback("train", "--help");
    expect(exitCode).toBe(0);
    expect(stdout).toContain("Examples:\n  $ lookback train ");
  });
});
