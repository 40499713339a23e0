/** Text as numbers and back: llama2.c's tokenizer against a naive reading of its rule, and Hugging Face's. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createLookback } from "lookback";
import { loadDecoder } from "lookback/model";
import { type TextTokenizer, tokenTexts } from "../../dist/model/tokenizer.js";
import { makeJsonTokenizer } from "../../dist/model/tokenizer-json.js";
import { Llama2cTokenizer } from "../../dist/model/tokenizer-llama2c.js";
import { filesOf, gpt2Shapes, randomTensors, tokenizerJson, VOCABULARY } from "./support/model-folders.ts";
import { readStories, STORIES_MISSING, storiesPresent } from "./support/stories.ts";

const TEXTS = [
  "Once upon a time",
  "  two  spaces ",
  "日本語 🎉 é",
  "tab\tline\nend",
  "\uFEFFmark",
  "",
  " ",
  "🧑‍🚀",
  "a\u0000b",
];

describe("tokenizer.bin of llama2.c", () => {
  if (!storiesPresent) {
    test.skip(STORIES_MISSING, () => {});
    return;
  }
  const bytes = readStories("tok512.bin");
  const tokenizer = new Llama2cTokenizer(bytes, "tok512.bin");

  /** Merges the best-scored pair, the leftmost of equals, until none is left: looked for anew each time. */
  function naive(text: string): number[] {
    const view = new DataView(bytes.buffer);
    const words: string[] = [];
    const scores: number[] = [];
    for (let at = 4; at < bytes.length; ) {
      const length = view.getInt32(at + 4, true);
      scores.push(view.getFloat32(at, true));
      words.push(Buffer.from(bytes.subarray(at + 8, at + 8 + length)).toString("latin1"));
      at += 8 + length;
    }
    const ids: number[] = [];
    for (const character of text === "" ? "" : ` ${text}`) {
      const own = Buffer.from(character).toString("latin1");
      const id = words.indexOf(own);
      ids.push(...(id >= 0 ? [id] : Array.from(own, (byte) => byte.charCodeAt(0) + 3)));
    }
    for (;;) {
      let [best, at, merged] = [-1e10, -1, -1];
      for (let i = 0; i + 1 < ids.length; i++) {
        const id = words.indexOf(words[ids[i]!]! + words[ids[i + 1]!]!);
        if (id >= 0 && scores[id]! > best) [best, at, merged] = [scores[id]!, i, id];
      }
      if (at < 0) return [1, ...ids];
      ids.splice(at, 2, merged);
    }
  }

  test("encodes as the rule says, whatever the text", () => {
    const words = fc.array(fc.constantFrom("the", "once", "little", " ", "ll", "a", "é", "日", "🎉", "!"), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary", maxLength: 24 }),
          words.map((list) => list.join("")),
        ),
        (text) => {
          expect(tokenizer.encode(text, true)).toEqual(naive(text));
        },
      ),
      { seed: 5, numRuns: 300 },
    );
  });

  test.each(TEXTS)("%j comes back, whole and token by token", (text) => {
    const ids = tokenizer.encode(text, true);
    expect(ids[0]).toBe(1);
    expect(tokenizer.decode(ids, false)).toBe(text);
    const stream = tokenizer.stream([1]);
    expect(
      ids
        .slice(1)
        .map((id) => stream.push(id))
        .join("") + stream.end(),
    ).toBe(text);
  });

  test("a text of 20,000 characters is no matter of minutes", () => {
    const text = "Once upon a time there was a little girl. ".repeat(480);
    expect(tokenizer.decode(tokenizer.encode(text, true), false)).toBe(text);
  });

  test("a character in three tokens comes when it is complete, and a piece of it as U+FFFD in the end", () => {
    const bytes = [...Buffer.from("日")].map((byte) => byte + 3);
    const stream = tokenizer.stream([1]);
    expect(bytes.map((id) => stream.push(id))).toEqual(["", "", "日"]);
    expect(stream.push(bytes[0]!)).toBe("");
    expect(stream.end()).toBe("\uFFFD");
  });

  test("parts of a character are called by their raw names", () => {
    expect(tokenTexts(tokenizer, [1, 403, ...[...Buffer.from("日")].map((byte) => byte + 3)])).toEqual([
      ...["<s>", "Once", "<0xE6>", "<0x97>", "日"],
    ]);
  });
});

describe("tokenizer.json of Hugging Face", () => {
  const tokenizer = makeJsonTokenizer(tokenizerJson(), {}, "tokenizer.json");

  test.each(TEXTS.filter((text) => text !== ""))("%j comes back, whole and token by token", async (text) => {
    const own = await tokenizer;
    const ids = own.encode(text, true);
    expect(own.decode(ids, false)).toBe(text);
    const stream = own.stream([]);
    expect(ids.map((id) => stream.push(id)).join("") + stream.end()).toBe(text);
  });

  test("what streams, after any beginning, is what is decoded at once", async () => {
    const own = await tokenizer;
    fc.assert(
      fc.property(fc.array(fc.nat(VOCABULARY - 2), { maxLength: 60 }), fc.nat(10), (ids, start) => {
        const before = ids.slice(0, start);
        const given = own.decode(before, false);
        // A beginning that ends within a character says nothing about what follows.
        fc.pre(!given.endsWith("\uFFFD"));
        const stream = own.stream(before);
        const text =
          ids
            .slice(start)
            .map((id) => stream.push(id))
            .join("") + stream.end();
        expect(given + text).toBe(own.decode(ids, false));
      }),
      { seed: 6, numRuns: 300 },
    );
  });

  test("merges are used, special tokens are known and left out", async () => {
    const own = await tokenizer;
    expect(own.encode("once the", true).map((id) => own.raw(id))).toEqual(["once", "Ġthe"]);
    const ids = own.encode("once<|end|>", true);
    expect(ids.at(-1)).toBe(VOCABULARY - 1);
    expect([own.decode(ids, false), own.decode(ids, true)]).toEqual(["once", "once<|end|>"]);
  });

  test("one that is none is refused", async () => {
    await expect(makeJsonTokenizer({ model: { type: "no such" } }, {}, "t.json")).rejects.toMatchObject({
      code: "invalid-tokenizer",
      message: expect.stringContaining("t.json"),
    });
  });
});

test("model.encode, decode and tokenize are the tokenizer's", async () => {
  const lb = await createLookback();
  const config = { model_type: "gpt2", vocab_size: VOCABULARY, n_embd: 8, n_head: 2, n_layer: 1, n_positions: 16 };
  const model = await loadDecoder(lb, filesOf({ config, tensors: randomTensors(gpt2Shapes(config, ""), 1) }));
  expect(model.tokenize("once the 日")).toEqual(["once", " the", " ", expect.any(String), expect.any(String), "日"]);
  expect(model.decode(model.encode("once the 日"))).toBe("once the 日");
  expect(model.decode([VOCABULARY - 1])).toBe("");
  expect(model.decode([VOCABULARY - 1], { special: true })).toBe("<|end|>");
  lb.dispose();
});

describe("a stream that begins within a character", () => {
  const bytesOf = (text: string) => Array.from(new TextEncoder().encode(text));
  /** The text of `ids` behind a context that ends after the first `cut` of them. */
  const told = (tokenizer: TextTokenizer, ids: readonly number[], cut: number) => {
    const stream = tokenizer.stream(ids.slice(0, cut));
    return (
      ids
        .slice(cut)
        .map((id) => stream.push(id))
        .join("") + stream.end()
    );
  };

  test("tells it when it is complete, and all that follows: tokenizer.json", async () => {
    const tokenizer = await makeJsonTokenizer(tokenizerJson(), {}, "tokenizer.json");
    const ids = tokenizer.encode("xx🎉 and more 日本", false);
    const cuts = ids.map((_, cut) => told(tokenizer, ids, cut));
    expect(cuts.slice(2, 6)).toEqual(["🎉", "🎉", "🎉", "🎉"].map((one) => `${one} and more 日本`));
    expect(cuts[6]).toBe(" and more 日本");
    // A replacement character of the user's is none that waits.
    const own = tokenizer.encode("\uFFFDé", false);
    expect(told(tokenizer, own, 3)).toBe("é");
  });

  if (!storiesPresent) {
    test.skip(STORIES_MISSING, () => {});
    return;
  }
  test("tells it when it is complete: tokenizer.bin", () => {
    const tokenizer = new Llama2cTokenizer(readStories("tok512.bin"), "tok512.bin");
    const ids = bytesOf("🎉日!").map((byte) => byte + 3);
    expect(ids.map((_, cut) => told(tokenizer, ids, cut))).toEqual([
      "🎉日!",
      "🎉日!",
      "🎉日!",
      "🎉日!",
      "日!",
      "日!",
      "日!",
      "!",
    ]);
  });
});
