/** Tokenizers that are made from a text, as the tokenizer.json that Hugging Face's libraries read. */
import { BYTES, learnMerges } from "./bpe.js";

/** One token per character (code point), or a byte-level BPE of about so many tokens. */
export type TokenizerKind = "characters" | { readonly bpe: number };

export interface MadeTokenizer {
  /** The content of tokenizer.json. */
  readonly json: Record<string, unknown>;
  /** That of tokenizer_config.json. */
  readonly config: Record<string, unknown>;
  /** Of the token between documents; undefined where there is one document only. */
  readonly endId: number | undefined;
}

/** Stands for characters that the text did not have. */
export const UNKNOWN = "\uFFFD";
export const END_OF_TEXT = "<|endoftext|>";

/** The fewest tokens of a BPE: the bytes, and the end of a text. */
export const FEWEST_BPE = BYTES + 1;
export const MOST_BPE = 65536;

/** `documents`: of the texts; there are several, or one. */
export function makeTokenizer(kind: TokenizerKind, documents: readonly string[], hasEnd: boolean): MadeTokenizer {
  const parts = kind === "characters" ? characters(documents) : byteLevel(documents, kind.bpe - (hasEnd ? 1 : 0));
  const endId = hasEnd ? parts.size : undefined;
  const end = { content: END_OF_TEXT, single_word: false, lstrip: false, rstrip: false, normalized: false };
  return {
    endId,
    json: {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: hasEnd ? [{ id: endId, ...end, special: true }] : [],
      normalizer: null,
      pre_tokenizer: parts.preTokenizer,
      post_processor: null,
      decoder: parts.decoder,
      model: parts.model,
    },
    config: {
      tokenizer_class: "PreTrainedTokenizerFast",
      clean_up_tokenization_spaces: false,
      ...(hasEnd && { eos_token: END_OF_TEXT }),
      ...(kind === "characters" && { unk_token: UNKNOWN }),
    },
  };
}

interface Parts {
  readonly size: number;
  readonly preTokenizer: object;
  readonly decoder: object;
  readonly model: object;
}

const bpe = (vocab: readonly string[], merges: readonly string[], unknown: string | null): object => ({
  type: "BPE",
  dropout: null,
  unk_token: unknown,
  continuing_subword_prefix: null,
  end_of_word_suffix: null,
  fuse_unk: false,
  byte_fallback: false,
  ignore_merges: false,
  vocab: Object.fromEntries(vocab.map((token, id) => [token, id])),
  merges,
});

/** A BPE without merges, whose words are single characters. */
function characters(documents: readonly string[]): Parts {
  const found = new Set<string>([UNKNOWN]);
  for (const text of documents) for (const character of text) found.add(character);
  found.delete(UNKNOWN);
  const vocab = [UNKNOWN, ...[...found].sort((a, b) => a.codePointAt(0)! - b.codePointAt(0)!)];
  return {
    size: vocab.length,
    preTokenizer: { type: "Split", pattern: { Regex: "[\\s\\S]" }, behavior: "Isolated", invert: false },
    decoder: { type: "Fuse" },
    model: bpe(vocab, [], UNKNOWN),
  };
}

function byteLevel(documents: readonly string[], size: number): Parts {
  const { tokens, merges } = learnMerges(documents, size);
  const level = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  const pairs = merges.map(([left, right]) => `${tokens[left]} ${tokens[right]}`);
  return { size: tokens.length, preTokenizer: level, decoder: level, model: bpe(tokens, pairs, null) };
}
