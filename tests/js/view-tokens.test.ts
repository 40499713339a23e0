/** Tokens of pictures: what every kind of tokenizer writes, made readable. */
import { describe, expect, test } from "@jest/globals";
import { readTokens } from "lookback/view";

const labels = (tokens: string[], format?: Parameters<typeof readTokens>[1]) =>
  readTokens(tokens, format).map(({ label }) => label);
const texts = (tokens: string[]) => readTokens(tokens).map(({ text }) => text);

describe("byte-level BPE", () => {
  test("a leading space is a dot, a line break a sign", () => {
    expect(labels(["Hello", "Ġworld", "Ċ", "ĠĠ", "ĉ"])).toEqual(["Hello", "·world", "⏎", "␣␣", "⇥"]);
    expect(texts(["Hello", "Ġworld", "Ċ"])).toEqual(["Hello", " world", "\n"]);
  });

  test("Chinese without a single space is found out by its bytes", () => {
    // GPT-2 writes 你好 as ä½łå¥½.
    expect(labels(["ä½ł", "å¥½"])).toEqual(["你", "好"]);
  });

  test("a character whose bytes are in several tokens is in each, with its part", () => {
    const tokens = readTokens(["Ġ", "ä½", "ł", "å¥½"]);
    expect(tokens.map(({ label }) => label)).toEqual(["␣", "你 1∕2", "你 2∕2", "好"]);
    expect(tokens[1]?.part).toEqual({ index: 0, count: 2 });
    expect(tokens[2]?.part).toEqual({ index: 1, count: 2 });
    expect(tokens[3]?.part).toBeUndefined();
  });

  test("a text that is cut in the middle of a character shows the bytes that are left", () => {
    expect(labels(["Ġhi", "ä½"])).toEqual(["·hi", "⟨E4⟩⟨BD⟩"]);
  });

  test("words of other alphabets that look alike are words", () => {
    expect(labels(["był", "é", "œuvre"])).toEqual(["był", "é", "œuvre"]);
  });
});

describe("SentencePiece and WordPiece", () => {
  test("▁ is a space, and bytes join to characters", () => {
    expect(labels(["<s>", "▁The", "▁", "<0xE4>", "<0xBD>", "<0xA0>", "<0x0A>"])).toEqual([
      "<s>",
      "·The",
      "␣",
      "你 1∕3",
      "你 2∕3",
      "你 3∕3",
      "⏎",
    ]);
  });

  test("words without any white space are parted as a text is", () => {
    expect(texts(["The", "cat", ",", "it", "(", "is", ")", "的", "猫"]).join("")).toBe("The cat, it (is)的猫");
    expect(labels(["The", "cat"])).toEqual(["The", "cat"]);
    expect(texts(["h", "i"]).join("")).toBe("hi");
    expect(texts(["The", " cat", "s"]).join("")).toBe("The cats");
  });

  test("## continues a word", () => {
    expect(texts(["[CLS]", "play", "##ing", "well", "[SEP]"])).toEqual(["[CLS]", "play", "ing", " well", "[SEP]"]);
  });
});

test("control tokens of every family are special, words in brackets are not", () => {
  const special = [
    "<s>",
    "</s>",
    "<pad>",
    "<|endoftext|>",
    "<|im_start|>",
    "[CLS]",
    "<start_of_turn>",
    "<|begin▁of▁sentence|>",
  ];
  const plain = ["<0x0A>", "<", "[a]", "a<b>", "<=>", "<|"];
  expect(readTokens(special).map((token) => token.special)).toEqual(special.map(() => true));
  expect(readTokens(plain).map((token) => token.special)).toEqual(plain.map(() => false));
});

test("a control token parts the characters around it", () => {
  expect(labels(["<0xE4>", "</s>", "<0xBD>", "<0xA0>"])).toEqual(["⟨E4⟩", "</s>", "⟨BD⟩", "⟨A0⟩"]);
});

test("marks that would turn a line round are written as numbers; right-to-left words stay words", () => {
  expect(labels(["a\u202eb", "\u200f", "שלום", "\u0000"])).toEqual(["a⟨202E⟩b", "⟨200F⟩", "שלום", "⟨0000⟩"]);
});

test("nothing at all has a sign, so that no row is without a name", () => {
  expect(labels(["", " ", "\u00a0", "\u3000"])).toEqual(["∅", "␣", "⍽", "□"]);
});

test("a stated format is believed", () => {
  expect(labels(["Ġa"], "text")).toEqual(["Ġa"]);
  expect(labels(["é"], "byte-level")).toEqual(["⟨E9⟩"]);
});
