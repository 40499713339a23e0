/** `lookback train`, run as a user runs it. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { execa } from "execa";
import { noise, sentences } from "./support/corpora.ts";
import { ROOT } from "./support/process.ts";

jest.setTimeout(120_000); // a model learns in it, on whatever machine

const COMMAND = join(ROOT, "dist/cli/lookback.js");
const ENV = { NO_COLOR: "1", COLUMNS: "100", LANG: "C.UTF-8", TERM: "xterm-256color" };
const SIZES = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "32", "--batch", "4", "--lr", "0.003"];
const MODEL = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];

const start = (...args: string[]) =>
  execa(process.execPath, [COMMAND, ...args], { env: ENV, reject: false, stripFinalNewline: false });

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
    const { stdout, stderr, exitCode } = await start(...run, "--sample-every", "30", "--prompt", "the cat");
    expect({ exitCode, stderr: stderr.split("\n")[0] }).toEqual({
      exitCode: 0,
      stderr: expect.stringMatching(
        /^[\d,]+ parameters; [\d,]+ tokens to learn from, [\d,]+ kept back, a vocabulary of \d+$/,
      ),
    });
    expect(stdout).toMatch(/^--- step 30\nthe cat[\s\S]+\n--- step 60\nthe cat[\s\S]+\n$/);
    expect(stderr).toMatch(/\nstep 20\/60 loss \d\.\d+ val \d\.\d+ [\d,]+ tok\/s \d+ s left\n/);
    expect(stderr).toMatch(/\nDone after step 60: loss \d\.\d+, validation \d\.\d+ \(\d\.\d+ bits per character\)\.\n/);
    expect(readdirSync(out("a")).sort()).toEqual([...MODEL, "checkpoint.safetensors", "loss.csv"].sort());

    const [header, ...rows] = curve("a");
    expect(header).toBe("step,loss,validation");
    const numbers = rows.map((row) => row.split(","));
    expect(numbers.map(([step]) => Number(step))).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
    expect(numbers.filter(([, , validation]) => validation !== "").map(([step]) => step)).toEqual(["20", "40", "60"]);
    expect(Number(numbers[59]![1])).toBeLessThan(0.8 * Number(numbers[0]![1]));

    const generated = await start("generate", out("a"), "the", "-n", "10");
    expect(generated.exitCode).toBe(0);
    expect(generated.stdout.length).toBeGreaterThan("the".length + 5);
  });

  test("--json prints one object, and no samples", async () => {
    const sizes = [...SIZES, "--tokenizer", "bpe:270", "--family", "llama", "--kv-heads", "1", "--threads", "2"];
    const run = ["train", corpus, corpus, "--out", out("b"), ...sizes, "--steps", "5", "--sample-every", "5", "--json"];
    const { stdout, exitCode } = await start(...run);
    expect(exitCode).toBe(0);
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({ steps: 5, model: { family: "llama", kvHeads: 1, layers: 1, vocabSize: 270 } });
    expect(result.validation.loss).toBeGreaterThan(0);
    const endId = JSON.parse(readFileSync(join(out("b"), "config.json"), "utf8")).eos_token_id;
    expect(endId).toBe(269); // two documents
  });

  test("Ctrl-C saves a checkpoint and says how to go on; --resume gives the bits of a run without it", async () => {
    const run = [...SIZES, "--steps", "90", "--evaluate-every", "10", "--dropout", "0.1", "--dtype", "f32"];
    const whole = await start("train", corpus, "--out", out("whole"), ...run);
    expect(whole.exitCode).toBe(0);

    const child = start("train", corpus, "--out", out("cut"), ...run);
    let seen = "";
    child.stderr.on("data", (text: Buffer) => {
      const before = seen;
      seen += text;
      if (/step 10\//.test(seen) && !/step 10\//.test(before)) child.kill("SIGINT");
    });
    const { exitCode, stdout, stderr } = await child;
    expect({ exitCode, stdout }).toEqual({ exitCode: 130, stdout: "" });
    const [, saved] =
      /\nSaved after step (\d+) of 90\. Go on with: lookback train .*corpus\.txt --out .*cut --resume\n$/.exec(stderr)!;
    expect(Number(saved)).toBeGreaterThanOrEqual(10);
    expect(Number(saved)).toBeLessThan(90);
    expect(existsSync(join(out("cut"), "model.safetensors"))).toBe(false);

    const resumed = await start("train", corpus, "--out", out("cut"), "--resume");
    expect(resumed.exitCode).toBe(0);
    expect(resumed.stderr).toContain(`from step ${saved} on`);
    expect(curve("cut")).toEqual(curve("whole"));
    // The last model is written as f16 where nothing else is said: the checkpoints are compared.
    for (const name of ["checkpoint.safetensors", "tokenizer.json"])
      expect(Buffer.compare(readFileSync(join(out("cut"), name)), readFileSync(join(out("whole"), name)))).toBe(0);
  });

  test("--held-out keeps another text back, and the whole corpus is learnt from", async () => {
    const held = join(folder, "held.txt");
    writeFileSync(held, sentences(20, 4));
    const run = ["train", corpus, "--held-out", held, "--out", out("held"), ...SIZES, "--steps", "3", "--json"];
    const { trainCharacters, validationCharacters, validation } = JSON.parse((await start(...run)).stdout);
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
    const { stdout, exitCode } = await start(...run, "--validation", "0.3", "--keep", "best", "--json");
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
    const { exitCode, stdout, stderr } = await start("train", ...args());
    expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^lookback: [^\n]+\n$/);
    expect(existsSync(out("x"))).toBe(false);
  });

  test("--help shows examples", async () => {
    const { exitCode, stdout } = await start("train", "--help");
    expect(exitCode).toBe(0);
    expect(stdout).toContain("Examples:\n  $ lookback train ");
  });
});
