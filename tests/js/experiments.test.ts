/** The experiments on the mask and on heads: few steps, and texts on which they tell enough. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { execa } from "execa";
import { createLookback, type Lookback } from "lookback";
import { experimentHeads, type HeadsReport, headHabits } from "../../dist/experiment/heads.js";
import { experimentLeak, type LeakReport } from "../../dist/experiment/leak.js";
import { lossChart } from "../../dist/experiment/plot.js";
import { noise, sentences } from "./support/corpora.ts";
import { ROOT } from "./support/process.ts";

jest.setTimeout(300_000); // models learn in it, on whatever machine

let lb: Lookback;
beforeAll(async () => {
  lb = await createLookback();
});
afterAll(() => lb.dispose());

describe("leak", () => {
  // Letters without order: what comes next can be known by looking at it only, so the mask leaves no less than ln 8 nats.
  let report: LeakReport;
  const runs: string[] = [];
  beforeAll(async () => {
    const onProgress = (run: string, step: number) => step === 1 && runs.push(run);
    report = await experimentLeak(lb, { text: noise(20_000), steps: 250, seed: 1, onProgress });
  });

  test("without the mask the training loss falls below a third of that with it", () => {
    const [masked, unmasked] = report.runs;
    expect([masked.mask, unmasked.mask]).toEqual([true, false]);
    expect(masked.trainingLoss).toBeGreaterThan(0.9 * Math.log(8));
    expect(unmasked.trainingLoss).toBeLessThan(masked.trainingLoss / 3);
  });

  test("its honest validation loss is higher: with the mask on it has learnt nothing", () => {
    const [masked, unmasked] = report.runs;
    expect(unmasked.validationLoss).toBeGreaterThan(masked.validationLoss);
    expect(masked.validationLoss).toBeLessThan(1.1 * Math.log(8));
  });

  test("both begin alike, both write, and each text is judged", () => {
    const [masked, unmasked] = report.runs;
    expect(runs).toEqual(["with the mask", "without"]);
    expect(Math.abs(masked.curve[0]!.loss - unmasked.curve[0]!.loss)).toBeLessThan(0.3);
    for (const { curve, text, textLoss } of report.runs) {
      expect(curve.map(({ step }) => step)).toEqual(Array.from({ length: 250 }, (_, n) => n + 1));
      expect([...text]).toHaveLength(160);
      expect(textLoss).toBeGreaterThan(0);
    }
  });

  test("the same seed gives the same numbers, another one others", async () => {
    const small = (seed: number) => experimentLeak(lb, { text: noise(3000), steps: 4, seed });
    const [a, again, b] = [await small(3), await small(3), await small(4)];
    expect(again).toEqual(a);
    expect(b.runs[0].trainingLoss).not.toBe(a.runs[0].trainingLoss);
  });

  test("ends with its signal, and gives the memory back", async () => {
    const before = lb.memory().bytes;
    const controller = new AbortController();
    const onProgress = (_run: string, step: number) => step === 3 && controller.abort(new Error("enough"));
    const run = experimentLeak(lb, { text: noise(3000), steps: 50, seed: 1, signal: controller.signal, onProgress });
    await expect(run).rejects.toThrow("enough");
    expect(lb.memory().bytes).toBe(before);
  });
});

describe("heads", () => {
  let report: HeadsReport;
  beforeAll(async () => {
    report = await experimentHeads(lb, { text: sentences(400), steps: 60, seed: 1 });
  });

  test("1, 2, 4 and 8 heads of equal width learn for equally many steps", () => {
    expect(report.runs.map(({ heads }) => heads)).toEqual([1, 2, 4, 8]);
    for (const { heads, curve, trainingLoss, validationLoss, habits } of report.runs) {
      expect(curve).toHaveLength(60);
      expect(trainingLoss).toBeLessThan(curve[0]!.loss);
      expect(validationLoss).toBeGreaterThan(0);
      expect(habits.map(({ layer, head }) => [layer, head])).toEqual(
        [0, 1].flatMap((layer) => Array.from({ length: heads }, (_, head) => [layer, head])),
      );
    }
  });

  test("a head's habits are shares of its weight, and what the rules of summaries say of distance and entropy", () => {
    const uniform = [1, 2, 3, 4].flatMap((n) => Array.from({ length: 4 }, (_, key) => (key < n ? 1 / n : 0)));
    const before = [1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0];
    const weights = [[uniform, before].map((data) => ({ data: Float32Array.from(data), dims: [4, 4] }))];
    const [even, neighbour] = headHabits({ layers: [5], heads: [0, 3], weights });
    const mean = (a: number, b: number) => (a + b) / 2;
    expect(even).toMatchObject({ layer: 5, head: 0 });
    expect(even!.self).toBeCloseTo(mean(1 / 3, 1 / 4), 6);
    expect(even!.first).toBeCloseTo(mean(1 / 3, 1 / 4), 6);
    expect(even!.distance).toBeCloseTo(mean(1, 1.5), 6);
    expect(even!.entropy).toBeCloseTo(mean(Math.log(3), Math.log(4)), 6);
    expect(neighbour).toEqual({ layer: 5, head: 3, self: 0, previous: 1, first: 0, distance: 1, entropy: 0 });
  });
});

describe("the command", () => {
  const COMMAND = join(ROOT, "dist/cli/lookback.js");
  const ENV = { NO_COLOR: "1", COLUMNS: "100", LANG: "C.UTF-8", TERM: "xterm-256color" };
  const experiment = (...args: string[]) =>
    execa(process.execPath, [COMMAND, "experiment", ...args], { env: ENV, reject: false });
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "lookback-experiment-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("leak, on the text that comes with the package: losses, texts, and curves as SVG", async () => {
    const plot = join(folder, "leak.svg");
    const { stdout, stderr, exitCode } = await experiment("leak", "--steps", "10", "--plot", plot);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toMatch(/10 steps, seed 1/);
    expect(stdout).toMatch(/^training loss +\d\.\d{3} +\d\.\d{3}$/m);
    expect(stdout).toMatch(/^validation loss, mask on +\d\.\d{3} +\d\.\d{3}$/m);
    expect(readFileSync(plot, "utf8").match(/<path /g)).toHaveLength(4);
  });

  test("heads --json: one object, the same as from the function", async () => {
    const { stdout, exitCode } = await experiment("heads", "--steps", "3", "--seed", "2", "--json");
    expect(exitCode).toBe(0);
    const text = readFileSync(join(ROOT, "js/models/alice.txt"), "utf8");
    expect(JSON.parse(stdout)).toEqual(
      JSON.parse(JSON.stringify(await experimentHeads(lb, { text, steps: 3, seed: 2 }))),
    );
  });

  test("heads prints a table for each number of heads", async () => {
    const { stdout } = await experiment("heads", "--steps", "2");
    for (const title of ["1 head ", "2 heads", "4 heads", "8 heads"]) expect(stdout).toContain(`${title} `);
    expect(stdout.match(/^layer \d, head \d +\d+ % +\d+ % +\d+ % +\d+\.\d\d +\d+\.\d\d$/gm)).toHaveLength(30);
  });

  test.each([
    [["leak", "--steps", "0"], 2, "--steps"],
    [["leak", "missing.txt"], 1, "missing.txt"],
    [["mask"], 2, "unknown command 'mask'"],
  ])("%j: one clear line", async (args, code, said) => {
    const { stderr, stdout, exitCode } = await experiment(...args);
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: code });
    expect(stderr).toContain(said);
    expect(stderr.split("\n")).toHaveLength(1);
  });
});

describe("the chart", () => {
  const points = [
    [1, 4],
    [50, 2.5],
    [100, 1],
  ] as const;
  const svg = lossChart("a < b & c", [
    { name: "one", points, color: 0 },
    { name: 'two "quoted"', points: points.slice(1), color: 0, dashed: true },
  ]);

  test("has every point where its axis says", () => {
    const ticks = Array.from(svg.matchAll(/y="([\d.]+)" text-anchor="end"[^>]*>([\d.]+)</g), ([, y, loss]) => [
      Number(y),
      Number(loss),
    ]);
    const [[y0, loss0], [y1, loss1]] = [ticks[0]!, ticks.at(-1)!] as [[number, number], [number, number]];
    const lossAt = (y: number) => loss0 + ((y - y0) * (loss1 - loss0)) / (y1 - y0);
    const paths = Array.from(svg.matchAll(/ d="([^"]+)"/g), ([, d]) => d!.match(/-?[\d.]+,-?[\d.]+/g)!);
    expect(paths.map((path) => path.length)).toEqual([3, 2]);
    paths[0]!.forEach((point, at) => {
      expect(lossAt(Number(point.split(",")[1]))).toBeCloseTo(points[at]![1], 1);
    });
  });

  test("escapes what it is told", () => {
    expect(svg).toContain("a &lt; b &amp; c");
    expect(svg).toContain("two &quot;quoted&quot;");
    expect(svg).not.toMatch(/&(?!amp;|lt;|gt;|quot;)/);
  });
});
