/** What the bundled models are measured with: the n-gram baseline, bits per character, lengths of lines. */
import { describe, expect, test } from "@jest/globals";
import { paragraphs } from "../../js/models/tools/english-prose.mjs";
import { heldOutBits, surprise } from "../../js/models/tools/held-out.mjs";
import { countLines, linesOf } from "../../js/models/tools/line-lengths.mjs";
import { NGramModel } from "../../js/models/tools/ngram.mjs";
import { frequentOnly, isRegular } from "../../js/models/tools/tang-verse.mjs";

const TEXT =
  "the cat sat on the mat. the dog sat on the log. 猫坐在垫子上。the end of the tale, at last: 👩 the hat!\n".repeat(3);

describe("the n-gram baseline", () => {
  test.each([1, 2, 3, 5])("of order %i: the probabilities of all characters and of any other sum to 1", (order) => {
    const model = new NGramModel(TEXT, order);
    for (const context of ["", "t", "the ", "zzzz", "on t", "👩", "e l", "sat on the cat"]) {
      const sum = [...model.characters].reduce((total, one) => total + model.probability(one, [...context]), 0);
      const other = model.probability("§", [...context]);
      expect(other).toBeGreaterThan(0);
      expect(sum + other).toBeCloseTo(1, 12);
    }
  });

  test("a bigram model of 'abaab' has the probabilities that are worked out by hand", () => {
    // Bigrams: ab ×2, ba ×1, aa ×1. n₁ = 2, n₂ = 1: D₂ = 2 / (2 + 2 · 1) = 1/2.
    // Before a stand b and a (2 characters), before b stands a (1): n₁ = 1, n₂ = 1: D₁ = 1 / (1 + 2 · 1) = 1/3.
    // Uniform over a, b and any other: 1/3. p₁(a) = (2 − 1/3)/3 + (1/3 · 2/3) · 1/3 = 5/9 + 2/27 = 17/27; p₁(b) = 2/9 + 2/27 = 8/27.
    const model = new NGramModel("abaab", 2);
    expect(model.discounts).toEqual([1 / 3, 1 / 2]);
    expect(model.probability("a", [])).toBeCloseTo(17 / 27, 14);
    expect(model.probability("b", [])).toBeCloseTo(8 / 27, 14);
    // After a: b twice, a once. p₂(b) = (2 − 1/2)/3 + (1/2 · 2/3) · 8/27 = 1/2 + 8/81; p₂(a) = 1/6 + 17/81; any other: 1/3 · 2/27.
    expect(model.probability("b", ["a"])).toBeCloseTo(1 / 2 + 8 / 81, 14);
    expect(model.probability("a", ["a"])).toBeCloseTo(1 / 6 + 17 / 81, 14);
    expect(model.probability("x", ["a"])).toBeCloseTo(2 / 81, 14);
    // After b: a, always. p₂(a) = (1 − 1/2)/1 + 1/2 · 17/27.
    expect(model.probability("a", ["b"])).toBeCloseTo(1 / 2 + 17 / 54, 14);
    expect(model.bits("ab", 1)).toBeCloseTo(-Math.log2(1 / 2 + 8 / 81), 12);
  });

  test("a text like the one it has seen takes fewer bits than another, and fewer with a longer context", () => {
    const bits = [1, 2, 4].map((order) => new NGramModel(TEXT, order).bits("the cat sat on the mat."));
    expect(bits).toEqual([...bits].sort((a, b) => b - a));
    expect(new NGramModel(TEXT, 4).bits("tac eht no tas tam eht.")).toBeGreaterThan(3 * bits[2]!);
  });
});

describe("bits per character of a language model", () => {
  test("surprise is −ln softmax, however large the logits are", () => {
    expect(surprise([1000, 1000 + Math.log(3)], 1)).toBeCloseTo(-Math.log(3 / 4), 12);
    expect(surprise([0, 0, 0, 0], 2)).toBeCloseTo(Math.log(4), 14);
  });

  test("every token but the first is counted once, after as many as the windows allow", () => {
    // A model of one token per character, which gives a token's successor in the alphabet e² times the weight of any other.
    const seen: number[][] = [];
    const config = { contextLength: 8 };
    const model = {
      config,
      encode: (text: string) => Array.from(text, (one) => one.charCodeAt(0) - 97),
      decode: (ids: number[]) => String.fromCharCode(...ids.map((id) => id + 97)),
      forward(ids: number[]) {
        seen.push(ids);
        const data = Float32Array.from({ length: ids.length * 26 }, (_, at) =>
          at % 26 === (ids[Math.floor(at / 26)]! + 1) % 26 ? 2 : 0,
        );
        return { logits: { data, dims: [1, ids.length, 26] } };
      },
    };
    const text = "abcdefghijklmnopqrstuvwxyzab";
    const { bits, characters, tokens } = heldOutBits(model as unknown as Parameters<typeof heldOutBits>[0], text);
    const each = -Math.log2(Math.exp(2) / (Math.exp(2) + 25));
    expect({ characters, tokens }).toEqual({ characters: 27, tokens: 27 });
    expect(bits).toBeCloseTo(27 * each, 4);
    expect(seen.every(({ length }) => length <= 8)).toBe(true);
    expect(seen.map(([first]) => first)).toEqual([0, 4, 8, 12, 16, 20]);
  });
});

describe("texts", () => {
  test("paragraphs are lines, without headings, italics and tables", () => {
    const text =
      '[A Book by Somebody]\n\nCHAPTER I\n\nIt was\r\nlate--very _late_.\n\nTHE END\n\n1 | 2\n\n"Oh!"  said she.\n';
    expect(paragraphs(text)).toEqual(["It was late—very late.", '"Oh!" said she.']);
  });

  test("quatrains and octaves of one length are regular", () => {
    const five = "床前看月光，疑是地上霜。";
    const seven = "朝辞白帝彩云间，千里江陵一日还。";
    expect(
      [
        [five, five],
        [seven, seven, seven, seven],
      ].map(isRegular),
    ).toEqual([true, true]);
    expect([[five], [five, seven], [five, five, five], ["床前，疑是。", five]].map(isRegular)).toEqual(
      Array(4).fill(false),
    );
  });

  test("poems with rare characters go, until every character is frequent", () => {
    // d is dropped with its poem; then c comes no oftener than b, and so on until three characters are left.
    expect(frequentOnly(["aab", "abc", "aad"], 3)).toEqual(["aab", "abc"]);
    expect(frequentOnly(["aab", "abc", "aad"], 1)).toEqual([]);
  });

  test("lines are counted between punctuation marks", async () => {
    expect(linesOf("床前看月光，疑是地上霜。\n举头望山月，低头思故。")).toEqual([5, 5, 5, 4]);
    const poems = ["床前看月光，疑是地上霜。\n举头望山月，低头思故乡。", "床前，疑是地上霜。"];
    const seeds: unknown[] = [];
    const generate = (_prompt: string, { seed }: { seed: number }) => {
      seeds.push(seed);
      return { text: async () => poems[seed - 4] };
    };
    const counted = await countLines({ generate } as unknown as Parameters<typeof countLines>[0], {
      poems: 2,
      seed: 4,
    });
    expect(seeds).toEqual([4, 5]);
    expect(counted).toMatchObject({ lines: 6, fiveOrSeven: 5, asTheFirst: 5, wholePoems: 1, shareAsTheFirst: 5 / 6 });
  });
});
