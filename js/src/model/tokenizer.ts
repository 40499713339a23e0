/** Text as numbers and back, whatever file says how. */
export interface TextTokenizer {
  /** Ids are below this. */
  readonly size: number;
  /** `special`: with the tokens that begin (and end) a text for this model. */
  encode(text: string, special: boolean): number[];
  /** Without special tokens, but for `special`. */
  decode(ids: readonly number[], special: boolean): string;
  /** A token as the vocabulary writes it. */
  raw(id: number): string;
  /** The text of tokens that follow `context`, as they come. */
  stream(context: readonly number[]): TextStream;
}

/** What has been pushed so far, put together, is the text so far, but for bytes of a character that is not complete yet. */
export interface TextStream {
  push(id: number): string;
  /** What was held back: an incomplete character is U+FFFD. */
  end(): string;
}

/** What a token is called beside others: its text, or where it has none of its own (a part of a character), its raw form. */
export function tokenTexts(tokenizer: TextTokenizer, ids: readonly number[]): string[] {
  const stream = tokenizer.stream([]);
  return ids.map((id) => stream.push(id) || tokenizer.raw(id));
}
