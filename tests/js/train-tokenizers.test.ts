/** Tokenizers that a trainer makes of a text: what they write down is what @huggingface/tokenizers reads back. */

import { Tokenizer } from "@huggingface/tokenizers";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { tokenTexts } from "../../dist/model/tokenizer.js";
import { makeJsonTokenizer } from "../../dist/model/tokenizer-json.js";
import { learnMerges } from "../../dist/train/bpe.js";
import { END_OF_TEXT, makeTokenizer, type TokenizerKind, UNKNOWN } from "../../dist/train/tokenizer-files.js";

const ENGLISH =
  "It was the best of times, it was the worst of times,\nit was the age of wisdom, it wasn't the age of foolishness.\n";
const CHINESE = "春眠不觉晓，处处闻啼鸟。\n夜来风雨声，花落知多少。\n";
const MIXED = `${ENGLISH}\t${CHINESE}\r\n🎉 naïve café  two  spaces\u00A0__proto__ constructor\n\n\n`;

/** Read as a file is: through JSON. */
async function reader(kind: TokenizerKind, documents: readonly string[], hasEnd = false) {
  const made = makeTokenizer(kind, documents, hasEnd);
  const json = JSON.parse(JSON.stringify(made.json));
  return { made, json, tokenizer: await makeJsonTokenizer(json, made.config, "tokenizer.json") };
}

describe.each<[string, TokenizerKind]>([
  ["characters", "characters"],
  ["a BPE of 300 tokens", { bpe: 300 }],
])("%s", (_name, kind) => {
  test.each([ENGLISH, CHINESE, MIXED, "\n", "a", " a b "])("%j is its ids and back", async (text) => {
    const { tokenizer } = await reader(kind, [text]);
    const ids = tokenizer.encode(text, true);
    expect(tokenizer.decode(ids, false)).toBe(text);
    expect(tokenTexts(tokenizer, ids)).toHaveLength(ids.length);
    const stream = tokenizer.stream([]);
    expect(ids.map((id) => stream.push(id)).join("") + stream.end()).toBe(text);
    expect(Math.max(...ids)).toBeLessThan(tokenizer.size);
  });

  test("any text of known characters comes back", async () => {
    const { tokenizer } = await reader(kind, [MIXED]);
    const known = fc.array(fc.constantFrom(...MIXED), { minLength: 1, maxLength: 60 }).map((list) => list.join(""));
    fc.assert(fc.property(known, (text) => tokenizer.decode(tokenizer.encode(text, false), false) === text));
  });

  test("the library by itself gives the same ids", async () => {
    const { made, json, tokenizer } = await reader(kind, [MIXED], true);
    const library = new Tokenizer(json, made.config);
    for (const text of [MIXED, ENGLISH, CHINESE, "unseen: ßЖ", ""])
      expect(library.encode(text).ids).toEqual(tokenizer.encode(text, true));
    expect(library.encode(END_OF_TEXT).ids).toEqual([made.endId]);
    expect(made.endId).toBe(tokenizer.size - 1);
  });
});

describe("characters", () => {
  test("the vocabulary is the text's characters in their order, behind the unknown one", async () => {
    const { json, tokenizer } = await reader("characters", ["ba\nb", "🎉a"]);
    expect(json.model.vocab).toEqual({ [UNKNOWN]: 0, "\n": 1, a: 2, b: 3, "🎉": 4 });
    expect(tokenizer.encode("a🎉\nb", true)).toEqual([2, 4, 1, 3]);
  });

  test("every character that the text has not is U+FFFD", async () => {
    const { tokenizer } = await reader("characters", ["ab"]);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 20 }), (text) => {
        const characters = Array.from(text);
        const expected = characters.map((one) => (one === "a" ? 1 : one === "b" ? 2 : 0));
        expect(tokenizer.encode(text, false)).toEqual(expected);
        expect(tokenizer.decode(expected, false)).toBe(
          characters.map((one) => (/[ab]/.test(one) ? one : UNKNOWN)).join(""),
        );
      }),
    );
  });
});

describe("byte-level BPE", () => {
  test("nothing is unknown", async () => {
    const { tokenizer } = await reader({ bpe: 290 }, [ENGLISH]);
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        const wellFormed = text.replace(/\p{Surrogate}/gu, "\uFFFD");
        expect(tokenizer.decode(tokenizer.encode(wellFormed, false), false)).toBe(wellFormed);
      }),
    );
  });

  test("merges are those of a naive reading of the rule", () => {
    const words = (text: string) =>
      text.match(/'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu) ?? [];
    const text = ENGLISH.repeat(3) + CHINESE;
    let sequences = words(text).map((word) => Array.from(Buffer.from(word)));
    const expected: [number, number][] = [];
    for (let id = 256; id < 300; id++) {
      const counts = new Map<string, number>();
      for (const sequence of sequences)
        sequence.slice(1).forEach((right, i) => {
          const key = `${sequence[i]},${right}`;
          counts.set(key, (counts.get(key) ?? 0) + 1);
        });
      const order = (key: string) => key.split(",").map(Number) as [number, number];
      const [best] = [...counts]
        .filter(([, count]) => count > 1)
        .sort(([a, n], [b, m]) => m - n || order(a)[0] - order(b)[0] || order(a)[1] - order(b)[1]);
      const [left, right] = order(best![0]);
      expected.push([left, right]);
      sequences = sequences.map((sequence) => {
        const merged: number[] = [];
        for (const token of sequence) {
          if (token === right && merged.at(-1) === left) merged[merged.length - 1] = id;
          else merged.push(token);
        }
        return merged;
      });
    }
    expect(learnMerges([text], 300).merges).toEqual(expected);
  });

  test("it ends where no pair comes twice", () => {
    expect(learnMerges(["abcd"], 1000)).toMatchObject({ merges: [] });
    expect(learnMerges(["abab abab"], 1000).tokens.slice(256)).toEqual(["ab", "abab"]);
  });

  test("frequent words are one token", async () => {
    const { tokenizer } = await reader({ bpe: 320 }, [ENGLISH.repeat(4)]);
    expect(tokenTexts(tokenizer, tokenizer.encode("it was the age", false))).toContain(" was");
    expect(tokenizer.encode(ENGLISH, false).length).toBeLessThan(ENGLISH.length / 2);
  });
});
