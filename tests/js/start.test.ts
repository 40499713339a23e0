/** What `npm start` prints, read back from its output and held against the float64 reference. */
import { spawn, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "@jest/globals";
import stringWidth from "string-width";
import { heatMap, type Matrix } from "../../dist/cli/heatmap.js";
import { embed, randomLayer, tokenize } from "../../dist/cli/sentence.js";
import { detectTerminal } from "../../dist/cli/terminal.js";
import { parametersOfTorch, referenceLayer } from "./reference-layer.ts";

const START = join(dirname(fileURLToPath(import.meta.url)), "../../dist/cli/start.js");
const ESCAPE = "\u001b";
const SEED = 7;
const HEAD_DIM = 16;

function run(args: string[], env: Record<string, string> = {}): { status: number | null; out: string; err: string } {
  const { FORCE_COLOR: _f, NO_COLOR: _n, NODE_OPTIONS: _o, ...inherited } = process.env;
  const clean = { ...inherited, COLUMNS: "100", LANG: "C.UTF-8", LC_ALL: "C.UTF-8", TERM: "xterm-256color", ...env };
  const { status, stdout, stderr } = spawnSync(process.execPath, [START, ...args], { env: clean, encoding: "utf8" });
  return { status, out: stdout, err: stderr };
}

const numbers = (line: string): number[] =>
  Array.from(line.matchAll(/[−-]?(?:\d+(?:\.\d+)?|∞)/g), ([text]) =>
    Number(text.replace("−", "-").replace("∞", "Infinity")),
  );

/** The four rows of the example, 16 numbers each: scores, M, scores + M, weights. */
function exampleRows(out: string): number[][] {
  const lines = out.split("\n");
  const title = lines.findIndex((line) => line.includes("Q·Kᵀ"));
  return lines.slice(title + 2, title + 6).map((line) => numbers(line.replace(/^\S+/, "")));
}

/** The cells of the heat map with this title, NaN for the dots: [row][column]. */
function heatMapCells(out: string, title: string, tokens: number): number[][] {
  const lines = out.split("\n");
  const at = lines.findIndex((line) => line.includes(title));
  expect(at).toBeGreaterThan(0);
  const left = stringWidth(lines[at]!.slice(0, lines[at]!.indexOf(title)));
  // Columns are named by numbers where the tokens are too wide, and the rows then are as well.
  const numbered = /^ +0 +1 /.test(columnsFrom(lines[at + 1]!, left)) ? 1 : 0;
  return lines.slice(at + 2, at + 2 + tokens).map((line) => {
    const cells = Array.from(columnsFrom(line, left).matchAll(/\d+|·/g), ([text]) =>
      text === "·" ? Number.NaN : Number(text),
    );
    return cells.slice(numbered, numbered + tokens);
  });
}

/** The part of a line from a display column on. */
function columnsFrom(line: string, column: number): string {
  let width = 0;
  let index = 0;
  for (const character of line) {
    if (width >= column) break;
    width += stringWidth(character);
    index += character.length;
  }
  return line.slice(index);
}

/** The weights that the reference gives for the command's documented embedding and parameters: [head][query][key]. */
function expected(sentence: string, heads: number, causal: boolean): number[][][] {
  const tokens = tokenize(sentence);
  const embedDim = heads * HEAD_DIM;
  const shape = {
    batch: 1,
    queryLength: tokens.length,
    keyLength: tokens.length,
    embedDim,
    heads,
    kvHeads: heads,
    keyDim: embedDim,
    valueDim: embedDim,
  };
  const state = Object.fromEntries(
    Object.entries(randomLayer(embedDim, SEED)).map(([name, tensor]) => [
      name,
      (tensor as { data: Float32Array }).data,
    ]),
  );
  const x = embed(tokens, embedDim, SEED).data;
  const { softmax } = referenceLayer(parametersOfTorch(state, shape), shape, x, x, x, { causal });
  const n = tokens.length;
  return Array.from({ length: heads }, (_, h) =>
    Array.from({ length: n }, (_, i) => Array.from(softmax.slice((h * n + i) * n, (h * n + i + 1) * n))),
  );
}

function expectCells(cells: number[][], weights: number[][]): void {
  expect(cells.map((row) => row.length)).toEqual(weights.map((row) => row.length));
  weights.forEach((row, i) => {
    row.forEach((weight, j) => {
      const shown = cells[i]![j]!;
      // A dot stands for exactly 0; a percent is a rounded weight, give or take float32.
      if (weight === 0) expect(shown).toBeNaN();
      else expect(Math.abs(shown - 100 * weight)).toBeLessThan(0.501);
    });
  });
}

describe("the example of four tokens", () => {
  const { status, out, err } = run([]);

  test("ends by itself, without a complaint, and says which variant ran", () => {
    expect({ status, err }).toEqual({ status: 0, err: "" });
    expect(out).toMatch(/variant (simd|relaxed): multiply-add/);
  });

  test("shows M: 0 on and below the diagonal, −∞ above", () => {
    const mask = exampleRows(out).map((row) => row.slice(4, 8));
    expect(mask).toEqual([0, 1, 2, 3].map((i) => [0, 1, 2, 3].map((j) => (j > i ? Number.NEGATIVE_INFINITY : 0))));
  });

  test("shows scores + M and its softmax", () => {
    exampleRows(out).forEach((row, i) => {
      expect(row).toHaveLength(16);
      const [scores, masked, weights] = [row.slice(0, 4), row.slice(8, 12), row.slice(12)];
      expect(masked).toEqual(scores.map((score, j) => (j > i ? Number.NEGATIVE_INFINITY : score)));
      const exponentials = masked.map(Math.exp);
      const sum = exponentials.reduce((total, value) => total + value, 0);
      for (const [j, weight] of weights.entries())
        expect(Math.abs(weight - exponentials[j]! / sum)).toBeLessThan(0.011);
      expect(weights.slice(i + 1)).toEqual([0, 0, 0].slice(i));
    });
  });

  test("the first token sees itself only; every row sums to 1", () => {
    expect(exampleRows(out)[0]!.slice(12)).toEqual([1, 0, 0, 0]);
    expect(out).toContain("Largest weight above the diagonal: 0. Row sums: 1.000000 1.000000 1.000000 1.000000.");
  });
});

describe("heat maps of a sentence", () => {
  const ENGLISH = "The quick brown fox jumps over the lazy dog.";
  const CHINESE = "今天天气很好，我们一起去公园散步。";

  test("the built-in sentences are shown, causal and unmasked, as the reference has them", () => {
    const { out } = run([]);
    const second = out.indexOf("今天");
    for (const [part, sentence] of [
      [out.slice(0, second), ENGLISH],
      [out.slice(second), CHINESE],
    ] as const)
      for (const head of [0, 1]) {
        const n = tokenize(sentence).length;
        expectCells(heatMapCells(part, `head ${head} · causal`, n), expected(sentence, 2, true)[head]!);
        expectCells(heatMapCells(part, `head ${head} · no mask`, n), expected(sentence, 2, false)[head]!);
      }
  });

  test("a sentence of one's own, with as many heads as asked for", () => {
    const sentence = "time flies like an arrow";
    const { status, out } = run(["--heads", "3", ...sentence.split(" ")]);
    expect(status).toBe(0);
    for (const head of [0, 1, 2])
      expectCells(heatMapCells(out, `head ${head} · causal`, 5), expected(sentence, 3, true)[head]!);
    expect(out).not.toContain("head 3");
  });

  test("a Chinese sentence gets Chinese words, and its columns stay in line", () => {
    const { out } = run(["我喜欢猫和狗"]);
    expect(out).toContain("带掩码的注意力");
    const n = tokenize("我喜欢猫和狗").length;
    expectCells(heatMapCells(out, "头 0 · 因果", n), expected("我喜欢猫和狗", 2, true)[0]!);
    const lines = out.split("\n");
    const at = lines.findIndex((line) => line.includes("头 0 · 因果"));
    // The last cell of each row ends in the same column.
    expect(new Set(lines.slice(at + 1, at + 2 + n).map((line) => stringWidth(line))).size).toBe(1);
  });

  test.each([
    ["3", `${ESCAPE}[48;2;253;231;37m`],
    ["2", `${ESCAPE}[48;5;227m`],
  ])("FORCE_COLOR=%s paints the cells and keeps the numbers", (level, background) => {
    const { out } = run([], { FORCE_COLOR: level });
    // The colour of 100 %.
    expect(out.includes(background)).toBe(true);
    const text = stripVTControlCharacters(out);
    expectCells(heatMapCells(text, "head 1 · causal", 10), expected(ENGLISH, 2, true)[1]!);
    expect(exampleRows(text)).toEqual(exampleRows(run([]).out));
  });

  test("a pipe and NO_COLOR get plain shades", () => {
    for (const { out } of [run([]), run([], { NO_COLOR: "1" })]) {
      expect(out.includes(ESCAPE)).toBe(false);
      expect(out).toMatch(/[░▒▓█]/);
    }
  });

  test.each(["40", "80", "100", "160"])("nothing is wider than %s columns, however long the sentence", (columns) => {
    const long = Array.from({ length: 60 }, (_, i) => (i % 2 ? "supercalifragilistic" : `词${i}`)).join(" ");
    for (const sentence of [[], [long]]) {
      const { status, out } = run(sentence, { COLUMNS: columns });
      if (sentence.length > 0) expect(out).toContain("…");
      expect(status).toBe(0);
      expect(Math.max(...out.split("\n").map((line) => stringWidth(line)))).toBeLessThanOrEqual(Number(columns));
    }
  });

  test("what a sentence smuggles in does not reach the terminal as a command", () => {
    const { out } = run([`red ${ESCAPE}[31m text\u0007`]);
    expect(out.includes(ESCAPE)).toBe(false);
    expect(out).not.toContain("\u0007");
  });
});

describe("bad input", () => {
  test.each([
    [["  "], "the sentence is empty"],
    [["--heads", "0", "x"], "--heads takes a whole number from 1 to 16, not '0'"],
    [["--heads", "two"], "not 'two'"],
    [["--colour"], "--colour"],
    [["word ".repeat(2000)], "2000 tokens; at most 1024"],
  ])("%j: one clear message and the usage", (args, message) => {
    const { status, out, err } = run(args);
    expect({ status, out }).toEqual({ status: 1, out: "" });
    expect(err).toContain(message);
    expect(err).toContain("Usage: npm start");
    expect(err).not.toMatch(/\n\s+at /);
  });

  test("--help is no error", () => {
    const { status, out } = run(["--help"]);
    expect(status).toBe(0);
    expect(out).toContain("Usage: npm start");
  });

  test("a reader that stops reading is no error", async () => {
    const child = spawn(process.execPath, [START, "--heads", "16", "word ".repeat(200)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout.destroy();
    let complaint = "";
    child.stderr.on("data", (chunk: Buffer) => {
      complaint += chunk;
    });
    const status = await new Promise((resolve) => child.on("close", resolve));
    expect({ status, complaint }).toEqual({ status: 0, complaint: "" });
  });
});

describe("the heat-map printer", () => {
  const terminal = detectTerminal({ NO_COLOR: "1", TERM: "xterm" });
  const matrix = (rows: string[], columns: string[], values: number[]): Matrix => ({
    title: "m",
    rows,
    columns,
    values,
  });

  test("a rectangular matrix, with a dot for exactly 0 and a 0 for nearly", () => {
    const { lines } = heatMap(matrix(["a"], ["x", "y", "z"], [0, 0.001, 0.999]), terminal, 60);
    expect(lines.map((line) => line.trimEnd())).toEqual(["m", "      x    y    z", "a     ·    0 █100"]);
  });

  test("every line of a block has the block's width, whatever the script", () => {
    const tokens = ["é", "中文", "👩‍👩‍👧", "supercalifragilistic"];
    for (const width of [20, 40, 80]) {
      const { lines, width: blockWidth } = heatMap(matrix(tokens, tokens, Array(16).fill(0.25)), terminal, width);
      expect(new Set(lines.map((line) => stringWidth(line)))).toEqual(new Set([blockWidth]));
    }
  });

  test("what does not fit is left out in the middle, the same for rows and columns", () => {
    const tokens = Array.from({ length: 100 }, (_, i) => `t${i}`);
    const { lines, width } = heatMap(matrix(tokens, tokens, Array(10_000).fill(0.01)), terminal, 50);
    expect(width).toBeLessThanOrEqual(50);
    expect(lines[2]).toMatch(/^ 0 t0 /);
    expect(lines.at(-1)).toMatch(/^99 t99/);
    expect(lines.filter((line) => line.startsWith("…"))).toHaveLength(1);
  });
});
