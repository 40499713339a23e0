/** What <attention-heads> and <attention-text> are made of: sums of looks, thumbnails, tiles, sides of a text. No page is needed for any of it. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { readAttention, readTokens } from "lookback/view";
import { looksMarks, ROW } from "../../dist/view/heads/looks-marks.js";
import { headColours } from "../../dist/view/heads/palette.js";
import { paintThumbnail, thumbnailOf } from "../../dist/view/heads/thumbnail.js";
import { isolated, toggled } from "../../dist/view/heads/tiles.js";
import { matrixOf, strongest, sumsOf } from "../../dist/view/looks.js";
import { Shades } from "../../dist/view/map/shades.js";
import { directionOf, settingOf } from "../../dist/view/text/flow.js";
import { sidesOf, targetsOf } from "../../dist/view/text/sides.js";
import { LOOK } from "./view-look.js";

const tensor = (data: number[], ...dims: number[]) => ({ data: Float32Array.from(data), dims });

describe("looks", () => {
  const attention = readAttention({
    weights: tensor([1, 0, 0, 0.25, 0.75, 0, 0.5, 0.125, 0.375, 1, 0, 0, 0.5, 0.5, 0, 0.25, 0.25, 0.5], 2, 3, 3),
    tokens: ["a", "b", "c"],
  });

  test("several heads are averaged, in whatever order they are named", () => {
    const both = [...attention.matrix(0, [0, 1])];
    expect(both).toEqual([...attention.matrix(0, "mean")]);
    expect(both).toEqual([...attention.matrix(0, [1, 0])]);
    expect(both.slice(3, 6)).toEqual([0.375, 0.625, 0]);
    expect([...attention.matrix(0, [1])]).toEqual([...attention.matrix(0, 1)]);
  });

  test("chosen queries are added up by key, chosen keys by query", () => {
    const matrix = attention.matrix(0, 0);
    expect([...sumsOf(attention, matrix, "from", [1, 2])]).toEqual([0.75, 0.875, 0.375]);
    expect([...sumsOf(attention, matrix, "to", [0])]).toEqual([1, 0.25, 0.5]);
    expect([...sumsOf(attention, matrix, "from", [])]).toEqual([0, 0, 0]);
  });

  test("a value of length 2 counts twice where weights are value-weighted, and not where they are not", () => {
    const given = readAttention({
      weights: tensor([1, 0, 0.5, 0.5], 1, 2, 2),
      v: tensor([0, 2, 1, 0], 1, 2, 2),
      tokens: ["a", "b"],
    });
    expect([...matrixOf(given, 0, 0, true)]).toEqual([2, 0, 1, 0.5]);
    expect([...matrixOf(given, 0, 0, false)]).toEqual([1, 0, 0.5, 0.5]);
    expect([...matrixOf(attention, 0, 0, true)]).toEqual([...attention.matrix(0, 0)]);
  });

  test("the strongest come first, equal ones in the text's order; what is masked is never one of them", () => {
    const amounts = Float32Array.of(0.25, 0, 0.5, 0.25, Number.NEGATIVE_INFINITY, Number.NaN);
    expect(strongest(amounts, {})).toEqual([2, 0, 3]);
    expect(strongest(amounts, { count: 2 })).toEqual([2, 0]);
    expect(strongest(amounts, { count: 0 })).toEqual([]);
    expect(strongest(amounts, { threshold: 0.3 })).toEqual([2]);
    expect(strongest(Float32Array.of(-1, 3, Number.NEGATIVE_INFINITY), {})).toEqual([1, 0]);
  });
});

describe("thumbnails", () => {
  test("no weight is lost: the strongest of a picture is the strongest of its matrix, in the pixel that holds it", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 20 }),
        fc.nat(),
        (rows, columns, mostRows, mostColumns, seed) => {
          const place = seed % (rows * columns);
          const matrix = Float32Array.from({ length: rows * columns }, (_, i) => (i === place ? 0.9 : (i % 7) / 100));
          const picture = thumbnailOf(matrix, rows, columns, "weights", mostRows, mostColumns);
          expect([picture.rows, picture.columns]).toEqual([Math.min(rows, mostRows), Math.min(columns, mostColumns)]);
          const row = Math.floor((Math.floor(place / columns) * picture.rows) / rows);
          const column = Math.floor(((place % columns) * picture.columns) / columns);
          expect(picture.data[row * picture.columns + column]).toBe(Math.fround(0.9));
          expect(picture.data.filter((value) => value === Math.fround(0.9))).toHaveLength(1);
        },
      ),
    );
  });

  test("of scores the one farthest from 0 is seen, −∞ only where all are masked, NaN always", () => {
    const hidden = Number.NEGATIVE_INFINITY;
    const picture = (...row: number[]) => thumbnailOf(Float32Array.from(row), 1, row.length, "scores", 1, 1).data[0];
    expect(picture(1, -3, 2)).toBe(-3);
    expect(picture(hidden, 0.5)).toBe(0.5);
    expect(picture(hidden, hidden)).toBe(hidden);
    expect(picture(5, Number.NaN, 6)).toBeNaN();
    expect(thumbnailOf(Float32Array.of(0.5, Number.NaN, 0.7), 1, 3, "weights", 1, 1).data[0]).toBeNaN();
    // Processors write NaN with a sign, too.
    const signed = new Float32Array(Int32Array.of(0, -4194304, 0).buffer);
    expect(thumbnailOf(signed, 1, 3, "weights", 1, 1).data[0]).toBeNaN();
  });
});

describe("a thumbnail's pixels", () => {
  const shades = new Shades("weights", 1, "linear", "blues", LOOK);

  test("each pixel has the colour of the cell below it, and none beside the picture is touched", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 6, max: 20 }),
        fc.integer({ min: 6, max: 20 }),
        (rows, columns, height, width) => {
          const data = Float32Array.from({ length: rows * columns }, (_, i) => ((i * 5) % 8) / 7);
          const stride = width + 3;
          const pixels = new Uint32Array(height * stride).fill(7);
          paintThumbnail({ rows, columns, data }, shades, height, width, pixels, stride);
          for (let y = 0; y < height; y++)
            for (let x = 0; x < stride; x++) {
              const cell = Math.floor((y * rows) / height) * columns + Math.floor((x * columns) / width);
              const [red, green, blue] = x < width ? shades.colour(data[cell]!) : [7, 0, 0];
              const opaque = x < width ? 255 : 0;
              expect(pixels[y * stride + x]).toBe(((opaque << 24) | (blue << 16) | (green << 8) | red) >>> 0);
            }
        },
      ),
    );
  });
});

describe("tiles", () => {
  test("a click turns a head on or off, but never the last one off; two clicks leave it alone, or bring all back", () => {
    expect(toggled([0, 2], 1)).toEqual([0, 1, 2]);
    expect(toggled([0, 1, 2], 1)).toEqual([0, 2]);
    expect(toggled([1], 1)).toEqual([1]);
    expect(isolated([0, 1, 2], 1, 3)).toEqual([1]);
    expect(isolated([1], 1, 3)).toEqual([0, 1, 2]);
    expect(isolated([0], 1, 3)).toEqual([1]);
  });

  test.each(["light", "dark"] as const)("up to 32 heads all have colours of their own (%s)", (scheme) => {
    for (const heads of [1, 2, 8, 12, 16, 32]) {
      const colours = headColours(heads, scheme);
      expect(new Set(colours).size).toBe(heads);
      for (const colour of colours) expect(colour).toMatch(/^#[0-9a-f]{6}$/);
    }
  });
});

describe("lines of the heads", () => {
  const attention = readAttention({ weights: tensor([1, 0, 0.5, 0.5], 1, 2, 2), tokens: ["a", "b"] });
  const matrix = attention.matrix(0, 0);
  const places = { left: 100, right: 300, top: 0, height: 2 * ROW, offset: 0, strip: 5 };

  test("every weight that is not 0 of a chosen query has a line as strong as it is, from its row to the key's", () => {
    const marks = looksMarks(
      { attention, heads: [{ matrix, colour: "#123456" }], queries: [1], chosen: true, ofOne: true },
      places,
    );
    const lines = marks.filter((mark) => mark.is === "curve");
    expect(lines.map(({ opacity }) => opacity)).toEqual([0.5, 0.5]);
    expect(lines.map(({ points }) => [points[0], points[1], points[6], points[7]])).toEqual([
      [100, 1.5 * ROW, 300, 0.5 * ROW],
      [100, 1.5 * ROW, 300, 1.5 * ROW],
    ]);
    expect(marks.filter((mark) => mark.is === "rect").map(({ opacity }) => opacity)).toEqual([0.5, 0.5]);
  });

  test("of too many lines the strongest are drawn, of equal ones as many as there is room for, all over the picture", () => {
    const length = 60;
    const drawn = (weight: (query: number, key: number) => number, chosen: boolean) => {
      const data = Array.from({ length: length ** 2 }, (_, i) => weight(Math.floor(i / length), i % length));
      const many = readAttention({ weights: tensor(data, 1, length, length) });
      const heads = [{ matrix: many.matrix(0, 0), colour: "#123456" }];
      const queries = Array.from({ length }, (_, query) => query);
      const whole = { ...places, height: length * ROW };
      return looksMarks({ attention: many, heads, queries, chosen, ofOne: true }, whole).filter(
        ({ is }) => is === "curve",
      );
    };
    for (const [chosen, most] of [
      [true, 800],
      [false, 200],
    ] as const) {
      const even = drawn(() => 0.5, chosen);
      expect(even).toHaveLength(most);
      expect(new Set(even.map((mark) => mark.is === "curve" && mark.points[1])).size).toBe(length);
      const few = drawn((query, key) => (query === key ? 0.9 : 0.1), chosen);
      expect(few).toHaveLength(most);
      const strengths = few.map((mark) => (mark.is === "curve" ? mark.opacity : 0));
      expect(strengths.filter((strength) => strength === Math.max(...strengths))).toHaveLength(length);
    }
  });

  test("marks beside the keys add up over the chosen queries; a masked key has none", () => {
    const picture = { attention, heads: [{ matrix, colour: "#123456" }], queries: [0], chosen: true, ofOne: true };
    const rects = (queries: number[]) =>
      looksMarks({ ...picture, queries }, places).filter((mark) => mark.is === "rect");
    expect(rects([0])).toHaveLength(1);
    expect(rects([0, 1]).map(({ opacity }) => opacity)).toEqual([1, 0.5]);
  });
});

describe("texts", () => {
  test("spaces part tokens and are no part of them; what is no text shows its label", () => {
    const settings = readTokens([" the", "cat", " ", "\n", "<s>"], "text").map(settingOf);
    expect(settings.map(({ before, shown, after }) => [before, shown, after])).toEqual([
      [" ", "the", ""],
      ["", "cat", ""],
      ["", "␣", ""],
      ["", "⏎", "\n"],
      ["", "<s>", ""],
    ]);
    // A middle dot that is text is not taken for a space.
    expect(settingOf(readTokens(["·"], "text")[0]!).shown).toBe("·");
    const wordPieces = readTokens(["[CLS]", "the", "cat", "##s", "sat"]).map(settingOf);
    expect(wordPieces.map(({ before, shown }) => before + shown).join("")).toBe("[CLS]the cats sat");
  });

  test("a character that several tokens share says which part each of them holds", () => {
    const [first, second] = readTokens(["æĹ", "¥", "Ġto"], "byte-level").map(settingOf);
    expect(first?.shown).toBe("日 1∕2");
    expect(second?.shown).toBe("日 2∕2");
  });

  test("a text runs as its letters do, whatever control tokens come first", () => {
    expect(directionOf(readTokens(["<s>", " שלום", " world"], "text"))).toBe("rtl");
    expect(directionOf(readTokens(["<s>", "world", " שלום"], "text"))).toBe("ltr");
    expect(directionOf(readTokens(["1", "."], "text"))).toBe("ltr");
  });

  test("a text that looks at itself is shown once, two texts as two", () => {
    const own = readAttention({ weights: tensor(new Array(9).fill(0.1), 1, 3, 3), tokens: ["a", "b", "c"] });
    expect(sidesOf(own, "from")).toHaveLength(1);
    const cross = readAttention({
      weights: tensor(new Array(6).fill(0.1), 1, 2, 3),
      queryTokens: ["x", "y"],
      keyTokens: ["a", "b", "c"],
    });
    const sides = sidesOf(cross, "from");
    expect(sides.map(({ direction, tokens }) => [direction, tokens.length])).toEqual([
      ["from", 2],
      ["to", 3],
    ]);
    expect(targetsOf(cross, sides, 0)).toEqual({ side: 1, tokens: [0, 1, 2] });
    expect(targetsOf(cross, sides, 1)).toEqual({ side: 0, tokens: [0, 1] });
  });

  test("of a text whose last tokens alone are queries, only these can be followed; looks to a key come from them", () => {
    const steps = readAttention({ weights: tensor([0.5, 0.5, 0, 0.25, 0.25, 0.5], 1, 2, 3), tokens: ["a", "b", "c"] });
    const from = sidesOf(steps, "from");
    expect(from[0].places).toEqual([-1, 0, 1]);
    expect(targetsOf(steps, from, 0).tokens).toEqual([0, 1, 2]);
    const to = sidesOf(steps, "to");
    expect(to[0].places).toEqual([0, 1, 2]);
    expect(targetsOf(steps, to, 0).tokens).toEqual([1, 2]);
  });
});
