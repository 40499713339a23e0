/** `lookback train --resume`: what it remembers, that it goes on to the same bits, and on which engine. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Variant } from "lookback";
import { VERSION } from "../../dist/version.js";
import { savedBy, stateOf } from "./support/checkpoints.ts";
import { lookback, lookbackWith } from "./support/command.ts";
import { sentences } from "./support/corpora.ts";

jest.setTimeout(120_000); // a model learns in it, on whatever machine

const SIZES = ["--layers", "1", "--heads", "2", "--embed", "32", "--context", "32", "--batch", "4", "--lr", "0.003"];

let folder: string;
let corpus: string;
let held: string;
const at = (...names: string[]) => join(folder, ...names);
const bytes = (...names: string[]) => readFileSync(at(...names));
const told = (name: string) => JSON.parse(bytes(name, "run.json").toString());
const saved = (name: string) => bytes(name, "checkpoint.safetensors");
const resume = (name: string, ...more: string[]) => lookback("train", "--resume", "--out", at(name), ...more);
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lookback-resume-"));
  corpus = at("corpus.txt");
  held = at("held out.txt");
  writeFileSync(corpus, sentences(300));
  writeFileSync(held, sentences(20, 4));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A run of two steps in a folder of its own. */
async function twoSteps(name: string, ...more: string[]): Promise<void> {
  const { exitCode } = await lookback("train", corpus, "--out", at(name), ...SIZES, "--steps", "2", ...more);
  expect(exitCode).toBe(0);
}

test("Ctrl-C saves a checkpoint and says how to go on; that command alone gives the bits of a run without it", async () => {
  const run = [...SIZES, "--steps", "90", "--evaluate-every", "10", "--dropout", "0.1", "--dtype", "f32"];
  const both = [...run, "--held-out", held, "--keep", "best", "--save-every", "70", "--threads", "2"];
  const whole = await lookback("train", corpus, "--out", at("whole"), ...both);
  expect(whole.exitCode).toBe(0);

  const child = lookback("train", corpus, "--out", at("cut"), ...both);
  let seen = "";
  child.stderr.on("data", (text: Buffer) => {
    const before = seen;
    seen += text;
    if (/step 10\//.test(seen) && !/step 10\//.test(before)) child.kill("SIGINT");
  });
  const { exitCode, stdout, stderr } = await child;
  expect({ exitCode, stdout }).toEqual({ exitCode: 130, stdout: "" });
  const [, step, hint] = /\nSaved after step (\d+) of 90\. Go on with: lookback (train --resume --out .*)\n$/.exec(
    stderr,
  )!;
  expect(Number(step)).toBeGreaterThanOrEqual(10);
  expect(Number(step)).toBeLessThan(90);
  expect(hint).toBe(`train --resume --out ${at("cut")}`);
  expect(existsSync(at("cut", "loss.csv"))).toBe(true);

  const resumed = await lookback(...hint!.split(" "));
  expect(resumed.exitCode).toBe(0);
  expect(resumed.stderr).toContain(`from step ${step} on`);
  for (const name of [
    "checkpoint.safetensors",
    "loss.csv",
    "run.json",
    "model.safetensors",
    "config.json",
    "tokenizer.json",
  ])
    expect([name, Buffer.compare(bytes("cut", name), bytes("whole", name))]).toEqual([name, 0]);
  expect(told("cut")).toEqual({
    ...{ saveEvery: 70, keep: "best", dtype: "f32", threads: 2, corpus: [corpus], heldOut: held },
  });
});

describe("what a run was told", () => {
  test("is remembered with its defaults; what is given again wins, and is remembered in its turn", async () => {
    await twoSteps("told");
    const first = { saveEvery: 500, keep: "last", dtype: "f16", threads: 1, corpus: [corpus] };
    expect(told("told")).toEqual(first);
    const again = await resume("told", "--steps", "4", "--dtype", "f32", "--save-every", "3");
    expect(again.exitCode).toBe(0);
    expect(told("told")).toEqual({ ...first, dtype: "f32", saveEvery: 3 });
    expect(JSON.parse(bytes("told", "config.json").toString()).torch_dtype).toBe("float32");
    expect(stateOf(saved("told")).step).toBe(4);
  });

  test("does not hide that a text has changed", async () => {
    const changing = at("changing.txt");
    writeFileSync(changing, sentences(300));
    const { exitCode } = await lookback("train", changing, "--out", at("changed"), ...SIZES, "--steps", "2");
    expect(exitCode).toBe(0);
    writeFileSync(changing, sentences(300, 9));
    const refused = await resume("changed", "--steps", "3");
    expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringMatching(/^lookback: .*another text.*\n$/)]);

    rmSync(changing);
    const missing = await resume("changed", "--steps", "3");
    expect([missing.exitCode, missing.stderr]).toEqual([
      1,
      expect.stringMatching(/^lookback: .*changing\.txt .*ENOENT.*name it/),
    ]);
    const named = await lookback("train", corpus, "--resume", "--out", at("changed"), "--steps", "3");
    expect([named.exitCode, told("changed").corpus]).toEqual([0, [corpus]]);
  });

  test("is asked for where a folder does not have it, or has something else", async () => {
    await twoSteps("old");
    const note = at("old", "run.json");
    writeFileSync(note, JSON.stringify({ ...told("old"), threads: 0 }));
    const broken = await resume("old");
    expect([broken.exitCode, broken.stderr]).toEqual([
      1,
      expect.stringMatching(/^lookback: .*run\.json is not .*threads/),
    ]);
    writeFileSync(note, "{");
    expect((await resume("old")).stderr).toMatch(/^lookback: .*run\.json is not .*corpus/);
    renameSync(note, at("away"));
    const silent = await resume("old");
    expect([silent.exitCode, silent.stderr]).toEqual([1, expect.stringMatching(/^lookback: .*name the corpus/)]);
    const named = await lookback("train", corpus, "--resume", "--out", at("old"), "--steps", "3");
    expect([named.exitCode, told("old").corpus]).toEqual([0, [corpus]]);
  });

  test("is nothing without --resume: the corpus is to be named", async () => {
    const { exitCode, stderr } = await lookback("train", "--out", at("nothing"));
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("missing required argument 'corpus'")]);
  });
});

describe("the engine", () => {
  /** The variants that this machine has, and what they report. */
  let here: Record<Variant, boolean | undefined>;
  beforeAll(async () => {
    const fused = (variant: Variant) =>
      createLookback({ variant }).then(
        (lb) => {
          lb.dispose();
          return lb.fused;
        },
        () => undefined,
      );
    here = { simd: await fused("simd"), relaxed: await fused("relaxed") };
    for (const variant of ["simd", "relaxed"] as const)
      if (here[variant] !== undefined) await twoSteps(variant, "--variant", variant);
  });
  /** Goes on in a folder of its own from the simd run's checkpoint, as if another engine had saved it. */
  function continued(name: string, engine: Parameters<typeof savedBy>[0], flags: readonly string[], ...more: string[]) {
    mkdirSync(at(name));
    for (const file of ["run.json", "loss.csv"]) writeFileSync(at(name, file), bytes("simd", file));
    writeFileSync(at(name, "checkpoint.safetensors"), savedBy(engine, saved("simd")));
    return lookbackWith(flags, "train", "--resume", "--out", at(name), "--steps", "4", ...more);
  }
  const FOREIGN = { variant: "relaxed", fused: true };

  test("is the checkpoint's where nothing is said, and that is no news", async () => {
    for (const variant of ["simd", "relaxed"] as const) {
      if (here[variant] === undefined) continue;
      expect(stateOf(saved(variant)).engine).toEqual({ variant, fused: here[variant], version: VERSION });
      const { exitCode, stderr } = await resume(variant, "--steps", "3");
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.not.stringContaining("saved by") });
      expect(stateOf(saved(variant))).toMatchObject({ step: 3, engine: { variant, fused: here[variant] } });
    }
  });

  test("may be another that is named, with a warning; the next checkpoint is that one's", async () => {
    const { exitCode, stderr } = await continued("named", FOREIGN, [], "--variant", "simd");
    expect(exitCode).toBe(0);
    expect(stderr.split("\n")[0]).toBe(
      `The checkpoint in ${at("named")} was saved by variant 'relaxed' with fused multiply-add; it goes on with variant 'simd', to other bits.`,
    );
    expect(stateOf(saved("named"))).toMatchObject({ step: 4, engine: { variant: "simd", fused: false } });
  });

  test("is not silently another where this machine does not have the checkpoint's", async () => {
    const probe =
      "const v = WebAssembly.validate; WebAssembly.validate = (b) => b.length > 60 && v(b) || [...b].join().includes('253,230,1');";
    const without = ["--import", `data:text/javascript,${encodeURIComponent(probe)}`];
    const { exitCode, stderr } = await continued("lacking", FOREIGN, without);
    expect([exitCode, stderr]).toEqual([
      1,
      `lookback: The checkpoint in ${at("lacking")} was saved by variant 'relaxed' with fused multiply-add, which this engine does not have: ` +
        "--variant simd goes on with it, but to other bits.\n",
    ]);
    expect(stateOf(saved("lacking")).step).toBe(stateOf(saved("simd")).step);
  });

  test("is not silently one that rounds otherwise", async () => {
    const { exitCode, stderr } = await continued("unfused", { variant: "simd", fused: true }, []);
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringMatching(/was saved by .*, and here it is .*: --variant simd /),
    ]);
  });

  test("of a checkpoint that does not say it is any; that of another version is told", async () => {
    const silent = await continued("silent", undefined, []);
    expect([silent.exitCode, silent.stderr]).toEqual([0, expect.not.stringMatching(/saved by|trained by/)]);
    const older = await continued("older", { version: "0.0.1" }, []);
    expect([older.exitCode, older.stderr]).toEqual([
      0,
      expect.stringContaining(`was trained by lookback 0.0.1; this is ${VERSION}, whose bits may be others.\n`),
    ]);
  });
});
