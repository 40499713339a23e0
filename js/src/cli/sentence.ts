/** What `npm start` needs of texts and numbers. */

export const isChinese = (text: string): boolean => /\p{Script=Han}/u.test(text);

/**
 * Normally distributed numbers from a seed: mulberry32 (Tommy Ettinger, public domain), a 32-bit counter put through a
 * mixing function, made normal by Box and Muller. Written here because the picture must never change with a dependency.
 */
export function normalNumbers(seed: number): () => number {
  let counter = seed >>> 0;
  const uniform = () => {
    counter = (counter + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(counter ^ (counter >>> 15), counter | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

/** Text that comes in pieces, broken between words: what it gives is ready to be written. */
export class WordWrap {
  readonly #columns: number;
  readonly #widthOf: (text: string) => number;
  #column = 0;
  #space = false;
  #word = "";

  constructor(columns: number, widthOf: (text: string) => number) {
    this.#columns = columns;
    this.#widthOf = widthOf;
  }

  push(text: string): string {
    const parts = (this.#word + text).split(/([ \n])/);
    this.#word = parts.pop()!;
    return parts.map((part) => this.#place(part)).join("");
  }

  /** The last word. */
  end(): string {
    const last = this.#place(this.#word);
    this.#word = "";
    return last;
  }

  #place(part: string): string {
    if (part === "") return "";
    if (part === " ") {
      // Written with the word behind it, if that comes on the same line.
      this.#space = this.#column > 0;
      return "";
    }
    const gap = this.#space && part !== "\n" ? " " : "";
    this.#space = false;
    if (part === "\n") {
      this.#column = 0;
      return part;
    }
    const width = this.#widthOf(gap + part);
    if (this.#column + width <= this.#columns) {
      this.#column += width;
      return gap + part;
    }
    const starts = this.#column > 0;
    this.#column = 0;
    return (starts ? "\n" : "") + this.#broken(part);
  }

  /** A word wider than a line is broken where the line ends. */
  #broken(part: string): string {
    let written = "";
    for (const character of part) {
      const wide = this.#widthOf(character);
      if (this.#column + wide > this.#columns) {
        written += "\n";
        this.#column = 0;
      }
      written += character;
      this.#column += wide;
    }
    return written;
  }
}
