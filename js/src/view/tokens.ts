/** Tokens as people can read them: byte-level BPE, SentencePiece and WordPiece undone, whitespace made visible, split characters joined. */

/** How a tokenizer writes its tokens; 'auto' looks at all of them together. */
export type TokenFormat = "auto" | "text" | "byte-level" | "sentencepiece" | "wordpiece";

export interface Token {
  /** What it stands for, its whitespace included. A character that several tokens share is in each of them. */
  readonly text: string;
  /** What a picture shows: whitespace as signs, invisible characters by their numbers. */
  readonly label: string;
  /** A control token such as <s> or [CLS], which is no text. */
  readonly special: boolean;
  /** Its place in the text, from 0. */
  readonly position: number;
  /** Where a character is split over tokens: which of its pieces this token holds. */
  readonly part?: { readonly index: number; readonly count: number };
}

export const TOKEN_FORMATS: readonly TokenFormat[] = ["auto", "text", "byte-level", "sentencepiece", "wordpiece"];

const SPECIAL =
  /^(<\|[^|]*\|>|<[｜|][^｜|]*[｜|]>|<\/?s>|<\/?[a-z]+(_[a-z0-9]+)*>|\[(CLS|SEP|PAD|UNK|MASK|BOS|EOS)\])$/;
const BYTE_TOKEN = /^<0x([0-9A-Fa-f]{2})>$/;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]|[\ud802\ud803\ud83a\ud83b][\udc00-\udfff]/;
const LETTER = /\p{L}/u;

/** Signs in place of what cannot be seen, or would turn the line around it. */
const VISIBLE = new Map([
  ["\n", "⏎"],
  ["\r", "␍"],
  ["\t", "⇥"],
  ["\u00a0", "⍽"],
  ["\u3000", "□"],
]);
const INVISIBLE = /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u;

/** The bytes behind the characters of byte-level BPE: printable Latin-1 stands for itself, the rest for U+0100 … in order (GPT-2). */
const BYTE_OF = (() => {
  const bytes = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    bytes.set(String.fromCharCode(printable ? byte : next++), byte);
  }
  return bytes;
})();

const utf8 = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Whether a text's first letter belongs to a script that runs from right to left. */
export function runsRightToLeft(text: string): boolean {
  for (const character of text) {
    if (RIGHT_TO_LEFT.test(character)) return true;
    if (LETTER.test(character)) return false;
  }
  return false;
}

function byteLevelBytes(token: string): Uint8Array | null {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = BYTE_OF.get(token[i] ?? "");
    if (byte === undefined) return null;
    bytes[i] = byte;
  }
  return bytes;
}

/** A list is byte-level when every token is written in its alphabet, one uses a stand-in, and together they are UTF-8. */
function isByteLevel(tokens: readonly string[]): boolean {
  const text = tokens.filter((token) => !SPECIAL.test(token));
  if (!text.some((token) => /[\u0100-\u0143]/.test(token))) return false;
  const all: number[] = [];
  for (const token of text) {
    const bytes = byteLevelBytes(token);
    if (!bytes) return false;
    all.push(...bytes);
  }
  // A text may be cut anywhere: what is missing at its ends is no proof against it.
  while (all.length > 0 && ((all[0] ?? 0) & 0xc0) === 0x80) all.shift();
  let end = all.length;
  while (end > 0 && end > all.length - 4 && ((all[end - 1] ?? 0) & 0xc0) === 0x80) end--;
  const lead = all[end - 1] ?? 0;
  if (lead >= 0xc0 && all.length - end < characterLength(lead) - 1) all.length = end - 1;
  try {
    strict.decode(Uint8Array.from(all));
    return true;
  } catch {
    return false;
  }
}

export function detectFormat(tokens: readonly string[]): Exclude<TokenFormat, "auto"> {
  if (tokens.some((token) => token.includes("▁") || BYTE_TOKEN.test(token))) return "sentencepiece";
  if (isByteLevel(tokens)) return "byte-level";
  if (tokens.some((token) => /^##./u.test(token)) && tokens.some((token) => /^\[(CLS|SEP|MASK|PAD|UNK)\]$/.test(token)))
    return "wordpiece";
  return "text";
}

const UNSPACED =
  /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}/u;

/** A list without any white space, though with whole words: nobody wrote down what parts them. */
const areBareWords = (tokens: readonly string[]): boolean =>
  !tokens.some((token) => /\s/.test(token)) && tokens.some((token) => /\p{L}{2}/u.test(token));

/** Whether a space parts two bare words. */
const isParted = (before: string, after: string): boolean =>
  /^[\p{L}\p{N}([“‘]/u.test(after) &&
  !/[([“‘]$/u.test(before) &&
  !UNSPACED.test([...after][0] ?? "") &&
  !UNSPACED.test([...before].at(-1) ?? "");

/** Of formats whose tokens may hold parts of characters. */
function bytesOf(token: string, format: TokenFormat): Uint8Array {
  if (format === "byte-level") return byteLevelBytes(token) ?? utf8.encode(token);
  const byte = BYTE_TOKEN.exec(token)?.[1];
  return byte === undefined ? utf8.encode(token.replaceAll("▁", " ")) : Uint8Array.of(Number.parseInt(byte, 16));
}

function characterLength(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead >= 0xf0 && lead < 0xf8) return 4;
  if (lead >= 0xe0) return lead < 0xf0 ? 3 : 1;
  return lead >= 0xc0 ? 2 : 1;
}

interface Piece {
  text: string;
  part?: { index: number; count: number };
}

/** Gives each character of the joined bytes to the token, or the tokens, that its bytes come from. */
function joinCharacters(tokens: readonly Uint8Array[]): Piece[] {
  const owners = tokens.flatMap((bytes, token) => Array.from(bytes, () => token));
  const all = new Uint8Array(owners.length);
  let at = 0;
  for (const bytes of tokens) {
    all.set(bytes, at);
    at += bytes.length;
  }
  const pieces: Piece[] = tokens.map(() => ({ text: "" }));
  for (let byte = 0; byte < all.length; ) {
    let length = characterLength(all[byte] ?? 0);
    let character = "";
    try {
      character = strict.decode(all.subarray(byte, byte + length));
    } catch {
      length = 1;
    }
    const sharers = [...new Set(owners.slice(byte, byte + length))];
    sharers.forEach((token, index) => {
      const piece = pieces[token];
      if (!piece) return;
      piece.text += character || `⟨${(all[byte] ?? 0).toString(16).toUpperCase().padStart(2, "0")}⟩`;
      if (sharers.length > 1) piece.part = { index, count: sharers.length };
    });
    byte += length;
  }
  return pieces;
}

/** Signs for what cannot be seen. */
export function labelOf(text: string): string {
  if (text === "") return "∅";
  const blank = text.trim() === "";
  let label = "";
  for (const character of text) {
    if (character === " ") label += blank ? "␣" : label.replaceAll("·", "") === "" ? "·" : " ";
    else if (VISIBLE.has(character)) label += VISIBLE.get(character);
    else if (INVISIBLE.test(character))
      label += `⟨${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
    else label += character;
  }
  return label;
}

/** What each token is written as. A control token is written as it is, and parts the characters around it. */
function piecesOf(tokens: readonly string[], specials: readonly boolean[], format: TokenFormat): Piece[] {
  if (format === "text" || format === "wordpiece") return tokens.map((text) => ({ text }));
  const pieces: Piece[] = [];
  for (let start = 0; start < tokens.length; ) {
    let end = start;
    while (end < tokens.length && !specials[end]) end++;
    for (const piece of joinCharacters(tokens.slice(start, end).map((token) => bytesOf(token, format))))
      pieces.push(piece);
    if (end < tokens.length) pieces.push({ text: tokens[end] ?? "" });
    start = end + 1;
  }
  return pieces;
}

/** Makes a text's tokens readable; `first` is the position of the first one. */
export function readTokens(tokens: readonly string[], format: TokenFormat = "auto", first = 0): Token[] {
  const known = format === "auto" ? detectFormat(tokens) : format;
  const bare = format === "auto" && known === "text" && areBareWords(tokens);
  const specials = tokens.map((token) => SPECIAL.test(token) && !BYTE_TOKEN.test(token));
  return piecesOf(tokens, specials, known).map(({ text, part }, index) => {
    const special = specials[index] ?? false;
    const position = first + index;
    if (special) return { text, label: text, special, position };
    if (known === "wordpiece") {
      const continued = text.startsWith("##") && text.length > 2;
      const word = index > 0 && !continued && !specials[index - 1] ? ` ${text}` : text;
      return { text: continued ? text.slice(2) : word, label: labelOf(text), special, position };
    }
    if (bare && index > 0 && !specials[index - 1] && isParted(tokens[index - 1] ?? "", text))
      return { text: ` ${text}`, label: labelOf(text), special, position };
    const label = part ? `${labelOf(text)} ${part.index + 1}∕${part.count}` : labelOf(text);
    return part ? { text, label, special, position, part } : { text, label, special, position };
  });
}

/** Where a text has no tokens, its positions stand for them. */
export function numberedTokens(length: number, first = 0): Token[] {
  return Array.from({ length }, (_, index) => {
    const position = first + index;
    return { text: String(position), label: String(position), special: false, position };
  });
}
