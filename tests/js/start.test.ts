/** What `npm start` prints, read back from its output and held against what the model says when it is asked directly. */
import { spawn, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { loadDecoder, type Model } from "lookback/model";
import { englishProse } from "lookback/models/english-prose";
import { tangVerse } from "lookback/models/tang-verse";
import stringWidth from "string-width";
import { heatMap, type Matrix } from "../../dist/cli/heatmap.js";
import { normalNumbers, WordWrap } from "../../dist/cli/sentence.js";
import { detectTerminal } from "../../dist/cli/terminal.js";
import { headHabits } from "../../dist/experiment/heads.js";

const START = join(dirname(fileURLToPath(import.meta.url)), "../../dist/cli/start.js");
jest.setTimeout(60_000);
const ESCAPE = "\u001b";

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
  // The first row sees itself only: its dots, one per column from the second on, show how wide a cell is and where the first begins.
  const first = columnsFrom(lines[at + 2]!, left);
  const dots = Array.from(first.matchAll(/·/g), ({ index }) => stringWidth(first.slice(0, index)));
  const width = dots[1]! - dots[0]!;
  const begin = left + dots[0]! + 1 - 2 * width;
  return lines.slice(at + 2, at + 2 + tokens).map((line) =>
    Array.from({ length: tokens }, (_, column) => {
      // A cell has no wide character; 100 may fill it to its edges.
      const text = columnsFrom(line, begin + column * width)
        .slice(0, width)
        .replace(/[ ░▒▓█]/g, "");
      return text === "·" ? Number.NaN : Number(text);
    }),
  );
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

describe("the model's text and where its last words looked", () => {
  let lb: Lookback;
  let english: Model;
  let chinese: Model;
  beforeAll(async () => {
    // The command runs in this Node.js, so it takes this variant.
    lb = await createLookback();
    english = await loadDecoder(lb, englishProse);
    chinese = await loadDecoder(lb, tangVerse);
  });
  afterAll(() => lb.dispose());

  const SETTINGS = { maxTokens: 100, temperature: 0.6, topK: 20, seed: 1 };
  /** Line breaks and spaces are the terminal's business. */
  const squeezed = (text: string) => text.replace(/\s+/g, "");

  /** The rows and columns of the last twelve tokens, of the two heads that the command's header describes. */
  function lastWords(model: Model, whole: string): { title: RegExp; weights: number[][] }[] {
    const ids = model.encode(whole);
    const attended = model.attend(ids);
    const habits = headHabits(attended);
    const best = (measure: (habit: (typeof habits)[number]) => number) =>
      habits.reduce((a, b) => (measure(b) > measure(a) ? b : a));
    const heads = [
      best(({ previous }) => previous),
      best(({ self, previous, entropy }) => (1 - self - previous) * Math.exp(-entropy)),
    ];
    const [n, from] = [ids.length, Math.max(0, ids.length - 12)];
    return heads.map(({ layer, head }) => ({
      title: new RegExp(`(layer ${layer}, head ${head}|第 ${layer} 层，头 ${head})`),
      weights: Array.from({ length: n - from }, (_, row) =>
        Array.from(attended.weights[layer]![head]!.data.slice((from + row) * n + from, (from + row + 1) * n)),
      ),
    }));
  }

  function expectMaps(out: string, model: Model, whole: string): void {
    for (const { title, weights } of lastWords(model, whole))
      expectCells(heatMapCells(out, title.exec(out)![0], weights.length), weights);
  }

  test("the model goes on with the prompt as it does through the package", async () => {
    const { out } = run([]);
    const whole = `Emma was${await english.generate("Emma was", SETTINGS).text()}`;
    expect(squeezed(out)).toContain(squeezed(whole));
    expectMaps(out, english, whole);
  });

  test("a text of one's own, another seed, fewer tokens", async () => {
    const { status, out } = run(["--seed", "5", "--tokens", "30", "The", "old", "lady"]);
    expect(status).toBe(0);
    const whole = `The old lady${await english.generate("The old lady", { ...SETTINGS, seed: 5, maxTokens: 30 }).text()}`;
    expect(squeezed(out)).toContain(squeezed(whole));
    expectMaps(out, english, whole);
  });

  test("a Chinese text becomes a poem, with Chinese words around it, and columns stay in line", async () => {
    const { out } = run(["明月"]);
    expect(out).toContain("带掩码的注意力");
    const whole = `明月${await chinese.generate("明月", SETTINGS).text()}`;
    expect(squeezed(out)).toContain(squeezed(whole));
    expectMaps(out, chinese, whole);
  });

  test("where the locale is Chinese, the poem needs no text", async () => {
    const { out } = run([], { LC_ALL: "zh_CN.UTF-8" });
    expect(squeezed(out)).toContain(squeezed(`明月${await chinese.generate("明月", SETTINGS).text()}`));
  });

  test("the text comes piece by piece, before the maps", async () => {
    const child = spawn(process.execPath, [START], { stdio: ["ignore", "pipe", "inherit"] });
    const pieces: string[] = [];
    child.stdout.on("data", (chunk: Buffer) => void pieces.push(chunk.toString()));
    await new Promise((resolve) => child.on("close", resolve));
    const title = pieces.findIndex((piece) => /parameters, writes|个参数/.test(piece));
    const maps = pieces.findIndex((piece) => /Where the last words looked|看向何处/.test(piece));
    expect(maps - title).toBeGreaterThan(5);
  });

  test.each([
    ["3", `${ESCAPE}[48;2;253;231;37m`],
    ["2", `${ESCAPE}[48;5;227m`],
  ])("FORCE_COLOR=%s paints the cells and keeps the numbers", async (level, background) => {
    const { out } = run([], { FORCE_COLOR: level });
    // The colour of 100 %.
    expect(out.includes(background)).toBe(true);
    const text = stripVTControlCharacters(out);
    expectMaps(text, english, `Emma was${await english.generate("Emma was", SETTINGS).text()}`);
    expect(exampleRows(text)).toEqual(exampleRows(run([]).out));
  });

  test("a pipe and NO_COLOR get plain shades", () => {
    for (const { out } of [run([]), run([], { NO_COLOR: "1" })]) {
      expect(out.includes(ESCAPE)).toBe(false);
      expect(out).toMatch(/[░▒▓█]/);
    }
  });

  test.each(["40", "80", "100", "160"])("nothing is wider than %s columns, however long a word is", (columns) => {
    for (const text of [[], ["supercalifragilistic".repeat(4)], ["春风".repeat(30)]]) {
      const { status, out } = run(text, { COLUMNS: columns });
      expect(status).toBe(0);
      expect(Math.max(...out.split("\n").map((line) => stringWidth(line)))).toBeLessThanOrEqual(Number(columns));
    }
  });

  test("what a text smuggles in does not reach the terminal as a command", () => {
    const { out } = run([`red ${ESCAPE}[31m text\u0007`]);
    expect(out.includes(ESCAPE)).toBe(false);
    expect(out).not.toContain("\u0007");
  });
});

describe("text that comes in pieces", () => {
  const wrapped = (columns: number, pieces: string[]) => {
    const lines = new WordWrap(columns, stringWidth);
    return pieces.map((piece) => lines.push(piece)).join("") + lines.end();
  };

  test("breaks between words, wherever the pieces end", () => {
    const text = "the cat sat on the mat, and\nlooked back";
    expect(wrapped(10, [text])).toBe("the cat\nsat on the\nmat, and\nlooked\nback");
    expect(wrapped(10, [...text])).toBe(wrapped(10, [text]));
  });

  test("breaks a word that is wider than a line, and never a character", () => {
    expect(wrapped(5, ["abcdefgh"])).toBe("abcde\nfgh");
    expect(wrapped(5, ["明月几时有"])).toBe("明月\n几时\n有");
  });
});

test("the example's numbers are those of its seed", () => {
  const next = normalNumbers(7);
  const values = Array.from({ length: 10_000 }, next);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  expect(Math.abs(mean)).toBeLessThan(0.05);
  expect(Math.abs(variance - 1)).toBeLessThan(0.05);
  expect(normalNumbers(7)()).toBe(values[0]);
});

describe("bad input", () => {
  test.each([
    [["  "], "the text is empty"],
    [["--tokens", "0", "x"], "--tokens takes a whole number ≥ 1, not '0'"],
    [["--seed", "two"], "--seed takes a whole number ≥ 0, not 'two'"],
    [["--colour"], "--colour"],
    [["word ".repeat(2000)], "the model sees at most 256"],
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
    const child = spawn(process.execPath, [START, "--tokens", "200"], {
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
