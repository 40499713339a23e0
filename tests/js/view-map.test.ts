/** What a map is made of: pooled levels, filters, sums, views, exports. No page is needed for any of it. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { readAttention } from "lookback/view";
import { csvOf, htmlOf } from "../../dist/view/map/export.js";
import { barsOf, faded, marginalsOf, sharesOf } from "../../dist/view/map/filter.js";
import { layoutMap, tickStep } from "../../dist/view/map/layout.js";
import { type Pooling, Pyramid } from "../../dist/view/map/pyramid.js";
import { Shades } from "../../dist/view/map/shades.js";
import {
  cellAt,
  clamped,
  frameFor,
  levelFor,
  revealing,
  seen,
  wholeView,
  zoomed,
} from "../../dist/view/map/viewport.js";
import { LOOK } from "./view-look.js";

/** A block of the matrix, in plain words: what a pooled cell stands for. */
function block(
  data: Float32Array,
  rows: number,
  columns: number,
  level: number,
  row: number,
  column: number,
): number[] {
  const side = 2 ** level;
  const values: number[] = [];
  for (let i = row * side; i < Math.min(rows, (row + 1) * side); i++)
    for (let j = column * side; j < Math.min(columns, (column + 1) * side); j++) values.push(data[i * columns + j]!);
  return values;
}

describe("pooled levels", () => {
  const matrices = fc.tuple(fc.integer({ min: 1, max: 19 }), fc.integer({ min: 1, max: 19 })).chain(([rows, columns]) =>
    fc.record({
      rows: fc.constant(rows),
      columns: fc.constant(columns),
      data: fc
        .array(fc.oneof(fc.constant(0), fc.float({ min: 0, max: 1, noNaN: true })), {
          minLength: rows * columns,
          maxLength: rows * columns,
        })
        .map((list) => Float32Array.from(list)),
    }),
  );

  test("a cell is the largest of its block, or the mean, at every size and level", () => {
    fc.assert(
      fc.property(matrices, fc.constantFrom<Pooling>("max", "mean"), ({ rows, columns, data }, pooling) => {
        const pyramid = new Pyramid(data, rows, columns, pooling, "weights");
        for (let n = 1; n <= 5; n++) {
          const level = pyramid.level(n);
          expect([level.rows, level.columns]).toEqual([Math.ceil(rows / 2 ** n), Math.ceil(columns / 2 ** n)]);
          level.data.forEach((value, at) => {
            const values = block(data, rows, columns, n, Math.floor(at / level.columns), at % level.columns);
            if (pooling === "max") expect(value).toBe(Math.max(...values));
            else expect(value).toBeCloseTo(values.reduce((a, b) => a + b, 0) / values.length, 5);
          });
        }
        expect(pyramid.extent()).toBe(Math.max(...data));
      }),
    );
  });

  test("of scores the one farthest from 0 stays, −∞ only where all are masked, NaN always", () => {
    const { NEGATIVE_INFINITY: masked, NaN: none } = Number;
    const data = Float32Array.of(1, -3, masked, masked, masked, 2, masked, masked, none, 0, 1, masked);
    const level = new Pyramid(data, 3, 4, "max", "scores").level(1);
    expect([...level.data]).toEqual([-3, masked, none, 1]);
    const mean = new Pyramid(data.slice(0, 8), 2, 4, "mean", "scores").level(1);
    expect([...mean.data]).toEqual([0, masked]);
  });

  test("NaN is not lost among weights", () => {
    const data = Float32Array.of(0.5, Number.NaN, 0, 0);
    expect([...new Pyramid(data, 2, 2, "max", "weights").level(1).data]).toEqual([Number.NaN]);
  });
});

describe("filters", () => {
  test("R13: of each query k stay, by falling weight, then the lower key; the rest turns negative", () => {
    const weights = Float32Array.of(0.25, 0.25, 0.25, 0.25, 0.1, 0.6, 0, 0.3);
    expect([...faded(weights, 2, 4, { topK: 2, threshold: 0 })]).toEqual(
      [0.25, 0.25, -0.25, -0.25, -0.1, 0.6, -0, 0.3].map(Math.fround),
    );
  });

  test("k as large as the row changes nothing; a threshold fades what is below it", () => {
    const weights = Float32Array.of(0.5, 0.25, 0.25);
    expect([...faded(weights, 1, 3, { topK: 3, threshold: 0 })]).toEqual([0.5, 0.25, 0.25]);
    expect([...faded(weights, 1, 3, { topK: 0, threshold: 0.3 })]).toEqual([0.5, -0.25, -0.25]);
  });

  test("the number that stays is k for any weights", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(0.125, 0.25, 0.5, 1), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 30 }),
        (list, k) => {
          const kept = [...faded(Float32Array.from(list), 1, list.length, { topK: k, threshold: 0 })].filter(
            (w) => w > 0,
          );
          expect(kept).toHaveLength(Math.min(k, list.length));
          const best = [...list].sort((a, b) => b - a).slice(0, k);
          expect(kept.sort((a, b) => b - a)).toEqual(best);
        },
      ),
    );
  });

  test("sums and means along both axes, without what is no number", () => {
    const matrix = Float32Array.of(1, 2, 3, 4, Number.NaN, Number.NEGATIVE_INFINITY);
    const { queries, keys } = marginalsOf(matrix, 2, 3, "sum");
    expect([...queries]).toEqual([6, 4]);
    expect([...keys]).toEqual([5, 2, 3]);
    expect([...marginalsOf(matrix, 2, 3, "mean").keys]).toEqual([2.5, 1, 1.5]);
  });

  test("bars are shares of the longest, and absent where all are alike", () => {
    expect(sharesOf(Float64Array.of(1, -4, 0))).toEqual(Float64Array.of(0.25, 1, 0));
    expect(sharesOf(Float64Array.of(1, 0.999, 1.001))).toBeNull();
    expect(sharesOf(Float64Array.of(0.9, 1, 1))).toEqual(Float64Array.of(0.9, 1, 1));
    expect(sharesOf(Float64Array.of(0, 0))).toBeNull();
    expect(sharesOf(Float64Array.of(3))).toEqual(Float64Array.of(1));
    const causal = Float32Array.of(1, 0, 0.5, 0.5);
    expect(barsOf(marginalsOf(causal, 2, 2, "mean"))).toEqual({ queries: null, keys: Float64Array.of(1, 1 / 3) });
    expect(barsOf(marginalsOf(Float32Array.of(0.5, 0.5, 0.5, 0.5), 2, 2, "mean"))).toBeNull();
  });
});

describe("views", () => {
  const frame = frameFor(4096, 4096, 700, 600, 2);

  test("the whole matrix fits into the room, small ones in cells of whole device pixels", () => {
    expect(frame.width).toBeCloseTo(600);
    expect(frame.height).toBeCloseTo(600);
    expect(frameFor(12, 12, 500, 600, 1.5).fit * 1.5).toBe(Math.floor((500 / 12) * 1.5));
    expect(frameFor(1, 2000, 700, 600, 1).height).toBeGreaterThan(30);
  });

  test("what is under the pointer stays there while it zooms", () => {
    let view = wholeView(frame);
    for (const factor of [1.7, 3, 5, 0.4]) {
      const before = cellAt(frame, view, 420, 133);
      const larger = zoomed(frame, view, factor, 420, 133);
      const after = cellAt(frame, larger, 420, 133);
      expect(Math.abs((after?.key ?? 0) - (before?.key ?? 0))).toBeLessThanOrEqual(1 / larger.cell + 1);
      view = larger;
    }
  });

  test("nothing outside of the matrix is ever shown", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.001, max: 500, noNaN: true }), fc.integer(), fc.integer(), (cell, x, y) => {
        const view = clamped(frame, { cell, x, y });
        const { rows, columns } = seen(frame, view);
        expect(rows[0]).toBeGreaterThanOrEqual(0);
        expect(rows[1]).toBeLessThanOrEqual(4096);
        expect(rows[1]).toBeGreaterThan(rows[0]);
        expect(columns[1]).toBeGreaterThan(columns[0]);
        expect(view.x + frame.width).toBeLessThanOrEqual(4096 * view.cell + 1e-3);
      }),
    );
  });

  test("a cell that is gone to is seen", () => {
    const view = revealing(frame, { cell: 20, x: 0, y: 0 }, { query: 4095, key: 2000 });
    const { rows, columns } = seen(frame, view);
    expect(rows[1]).toBe(4096);
    expect(columns[0]).toBeLessThanOrEqual(2000);
    expect(columns[1]).toBeGreaterThan(2000);
  });

  test("the level's cells are no smaller than a device pixel", () => {
    expect(levelFor(frame, { cell: 1, x: 0, y: 0 }, 1)).toBe(0);
    expect(levelFor(frame, { cell: 0.5, x: 0, y: 0 }, 1)).toBe(1);
    expect(levelFor(frame, { cell: 0.5, x: 0, y: 0 }, 2)).toBe(0);
    expect(levelFor(frame, { cell: 0.146, x: 0, y: 0 }, 1)).toBe(3);
  });

  test("labels that have no room give way to numbers at round steps", () => {
    expect([tickStep(0.15, 32), tickStep(1, 32), tickStep(10, 32)]).toEqual([500, 50, 5]);
  });
});

describe("shades", () => {
  const shades = (scale: "linear" | "log") => new Shades("weights", 1, scale, "cividis", LOOK);

  test("lightness rises with the weight on every scale, and masked is no shade of it", () => {
    for (const colors of ["viridis", "cividis", "blues"] as const)
      for (const scale of ["linear", "log"] as const) {
        const own = new Shades("weights", 1, scale, colors, LOOK);
        const light = ([r, g, b]: readonly number[]) => 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
        const lights = [0.001, 0.01, 0.1, 0.3, 0.6, 1].map((weight) => light(own.colour(weight)));
        const rising = colors === "blues" ? [...lights].reverse() : lights;
        expect(rising).toEqual([...rising].sort((a, b) => a - b));
        expect(own.css(0)).toBe("#e7e5e0");
        expect(own.css(1e-12)).not.toBe(own.css(0));
      }
  });

  test("painted pixels are the colours of their numbers", () => {
    for (const scale of ["linear", "log"] as const) {
      const own = shades(scale);
      const values = Float32Array.of(0, 1e-9, 0.01, 0.5, -0.5, 1, Number.NaN, 2);
      const pixels = new Uint32Array(8);
      own.paint(values, 4, [0, 0, 2, 4], pixels, 4);
      const bytes = new Uint8Array(pixels.buffer);
      values.forEach((value, i) => {
        expect([...bytes.slice(4 * i, 4 * i + 4)]).toEqual([...own.colour(value), 255]);
      });
    }
  });

  test("a number on its colour can be read: contrast 4.5 at least", () => {
    const luminance = (colour: readonly number[]) =>
      colour
        .map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i]!, 0);
    for (const colors of ["viridis", "cividis", "blues"] as const)
      for (const scheme of ["light", "dark"] as const) {
        const own = new Shades("weights", 1, "linear", colors, { ...LOOK, scheme });
        for (let weight = 0.01; weight <= 1; weight += 0.01) {
          const ground = luminance(own.colour(weight));
          const ink = own.ink(weight) === "#ffffff" ? 1 : 0;
          expect((Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05)).toBeGreaterThan(4.5);
        }
      }
  });
});

describe("exports", () => {
  const tokens = ["a,b", 'say "x"', "\n", "<b>"];
  const weights = [
    [1, 0, 0, 0],
    [0.1, 0.9, 0, 0],
    [0.3, 0.3, 0.4, 0],
    [0.25, 0.25, 0.25, 0.25],
  ];
  const attention = readAttention({ weights, tokens });
  const matrix = attention.matrix(0, 0);

  test("CSV gives every float32 back exactly, and quotes what must be quoted (RFC 4180)", () => {
    const lines = csvOf(attention, matrix).split("\r\n");
    expect(lines[0]).toBe(',"a,b","say ""x""",⏎,<b>');
    expect(lines).toHaveLength(6);
    const read = lines.slice(1, 5).flatMap((line) =>
      line
        .match(/[-\d.e]+(?=,|$)/g)!
        .slice(-4)
        .map(Number),
    );
    expect(read.map(Math.fround)).toEqual([...matrix]);
  });

  test("HTML is a table of its own with the tokens as text, not as markup", () => {
    const shades = new Shades("weights", 1, "linear", "blues", LOOK);
    const source = {
      attention,
      matrix,
      shown: matrix,
      shades,
      bars: null,
      look: LOOK,
      title: "A & B",
      numbers: true,
      pattern: "masked",
    };
    const html = htmlOf(source, () => "");
    expect(html.match(/<td title=/g)).toHaveLength(16);
    expect(html).toContain("&lt;b&gt;");
    expect(html).not.toContain("<b>");
    expect(html).toContain("<caption>A &amp; B</caption>");
    expect(html).toContain(`style="background:${shades.css(matrix[5]!)};`);
  });

  test("labels keep their room, and the picture stays within the width it is given", () => {
    for (const width of [300, 700, 1400]) {
      const layout = layoutMap(attention, width, 600, 2, (text) => text.length * 7, true);
      expect(layout.width).toBeLessThanOrEqual(width);
      expect(layout.left).toBeGreaterThan(7 * 5);
    }
  });

  const letters = (count: number, letter: string) =>
    readAttention({
      weights: { data: new Float32Array(count ** 2).fill(1), dims: [count, count] },
      tokens: Array.from({ length: count }, () => letter),
    });

  test("an axis whose tokens have no room leaves it to the numbers in their places", () => {
    const layout = layoutMap(letters(300, "a"), 300, 600, 2, (text) => text.length * 7, true);
    expect(layout.frame.fit).toBeLessThan(12);
    expect(layout.left).toBeGreaterThanOrEqual("299".length * 7);
    expect(layout.keyLabel).toBe("299".length * 7);
  });

  test("words that find no room because they lean leave it to numbers, which are not cut", () => {
    const layout = layoutMap(letters(120, "ab"), 24 + 120 * 12 + 2, 2000, 1, (text) => text.length * 7, false);
    expect(layout.frame.fit).toBeLessThan(12);
    expect(layout.keyLabel).toBe("119".length * 7);
    expect(layout.left).toBeGreaterThanOrEqual("119".length * 7);
  });

  test("single characters stand upright in cells that are hardly wider; words that would touch lean", () => {
    const room = (letter: string) => layoutMap(letters(20, letter), 20 * 14 + 60, 900, 1, () => 12, true);
    expect(room("生").frame.fit).toBeGreaterThan(13);
    expect(room("生").frame.fit).toBeLessThan(16);
    expect([room("生").slanted, room("il").slanted]).toEqual([false, true]);
  });
});
