import { fail, messageOf } from "../errors.js";
import type { TextStream, TextTokenizer } from "./tokenizer.js";

/** What is used of @huggingface/tokenizers. */
interface Library {
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] };
  decode(ids: number[], options: { skip_special_tokens: boolean; clean_up_tokenization_spaces: boolean }): string;
  id_to_token(id: number): string | undefined;
  get_vocab(withAdded: boolean): Map<string, number>;
}

/** Tokens before the new ones that a decoder may have to see: for spaces between words, and for characters of several tokens. */
const CONTEXT = 6;

/** A tokenizer.json of Hugging Face. The library is loaded with the first one. */
export async function makeJsonTokenizer(
  json: Record<string, unknown>,
  config: Record<string, unknown>,
  name: string,
): Promise<TextTokenizer> {
  const { Tokenizer } = await import("@huggingface/tokenizers");
  try {
    return new JsonTokenizer(new Tokenizer(json, config) as unknown as Library);
  } catch (error) {
    return fail("invalid-tokenizer", `${name} makes no tokenizer: ${messageOf(error)}`, error);
  }
}

class JsonTokenizer implements TextTokenizer {
  readonly #library: Library;
  readonly size: number;

  constructor(library: Library) {
    this.#library = library;
    let largest = -1;
    for (const id of library.get_vocab(true).values()) largest = Math.max(largest, id);
    this.size = largest + 1;
  }

  encode(text: string, special: boolean): number[] {
    return this.#library.encode(text, { add_special_tokens: special }).ids;
  }

  decode(ids: readonly number[], special: boolean): string {
    if (ids.length === 0) return "";
    const options = { skip_special_tokens: !special, clean_up_tokenization_spaces: false };
    return this.#library.decode([...ids], options);
  }

  raw(id: number): string {
    return this.#library.id_to_token(id) ?? `[${id}]`;
  }

  /** The text of a few tokens with the new one, less that without it. */
  stream(context: readonly number[]): TextStream {
    let known = context.slice(-CONTEXT);
    let given = this.decode(known, false);
    return {
      push: (id) => {
        known.push(id);
        const whole = this.decode(known, false);
        // What ends like this may be a character whose other bytes are to come.
        const sure = whole.replace(/\uFFFD+$/, "");
        // The context may end within a character, which is told when it is complete.
        let told = given;
        while (told.endsWith("\uFFFD") && !sure.startsWith(told)) told = told.slice(0, -1);
        if (!sure.startsWith(told) || sure.length === told.length) return "";
        const text = sure.slice(told.length);
        given = sure;
        if (known.length > 2 * CONTEXT) {
          const rest = this.decode(known.slice(-CONTEXT), false);
          // Never cut within a character.
          if (!rest.includes("\uFFFD")) {
            known = known.slice(-CONTEXT);
            given = rest;
          }
        }
        return text;
      },
      end: () => {
        const whole = this.decode(known, false);
        return whole.startsWith(given) ? whole.slice(given.length) : "";
      },
    };
  }
}
