/** The text that a model learns from, and the part that is kept back. */
import { fail, kindOf, refuse } from "../errors.js";
import { readOptions } from "../options.js";

/** A text, or documents, which a token separates. */
export type Documents = string | readonly string[];
/** Validation is cut off its end, or given apart. */
export type TrainingText = Documents | { readonly train: Documents; readonly validation: Documents };

export interface SplitText {
  readonly train: readonly string[];
  /** Empty where nothing is kept back. */
  readonly validation: readonly string[];
  /** Whether a token separates documents. */
  readonly separated: boolean;
}

const ACCEPTED = "a text, a list of documents, or { train, validation }";

/** Keeps about `share` of the text back: its last lines (or documents), of which nothing is trained on. */
export function readText(given: unknown, share: number, where: string): SplitText {
  if (kindOf(given) === "Object") {
    const read = { train: readDocuments, validation: readDocuments };
    const { train, validation } = readOptions(given, read, where);
    if (!train || !validation)
      return fail("bad-option", `${where}: ${train ? "validation" : "train"} is missing; it must be ${ACCEPTED}.`);
    return { train, validation, separated: train.length > 1 || validation.length > 1 };
  }
  const documents = readDocuments(given, where);
  return { ...splitDocuments(documents, share), separated: documents.length > 1 };
}

/** At the document's border next to the place where the share begins, or, where none is near, at a line's border within a document. */
function splitDocuments(documents: readonly string[], share: number): Pick<SplitText, "train" | "validation"> {
  const total = documents.reduce((sum, { length }) => sum + length, 0);
  const place = Math.round(total * (1 - share));
  if (place === total) return { train: documents, validation: [] };
  let first = 0;
  let begin = 0;
  while (begin + documents[first]!.length < place) begin += documents[first++]!.length;
  const within = documents[first]!;
  const end = begin + within.length;
  const near = (total * share) / 2;
  if (end < total && end - place <= Math.min(near, place - begin))
    return { train: documents.slice(0, first + 1), validation: documents.slice(first + 1) };
  if (first > 0 && place - begin <= near)
    return { train: documents.slice(0, first), validation: documents.slice(first) };
  const cut = lineBorder(within, place - begin);
  return {
    train: [...documents.slice(0, first), within.slice(0, cut)],
    validation: [within.slice(cut), ...documents.slice(first + 1)].filter((text) => text !== ""),
  };
}

function readDocuments(given: unknown, where: string): string[] {
  const list: unknown[] = Array.isArray(given) ? given : [given];
  const isText = (text: unknown) => typeof text === "string" && text !== "";
  if (list.length === 0 || !list.every(isText)) refuse("bad-option", where, `${ACCEPTED}, none of them empty`, given);
  // Half a surrogate pair is no character, and no UTF-8.
  return (list as string[]).map((text) => text.replace(/\p{Surrogate}/gu, "\uFFFD"));
}

/** The line border next to a place, or the place itself where there is none between two lines; never within a character. */
function lineBorder(text: string, place: number): number {
  const after = text.indexOf("\n", place - 1) + 1;
  const before = text.lastIndexOf("\n", place - 1) + 1;
  const borders = [after, before].filter((border) => border > 0 && border < text.length);
  if (borders.length > 0) return borders.reduce((a, b) => (Math.abs(b - place) < Math.abs(a - place) ? b : a));
  const within = /[\uDC00-\uDFFF]/.test(text[place] ?? "");
  return within ? place - 1 : place;
}

/** Code points. */
export function characterCount(documents: readonly string[]): number {
  let count = 0;
  for (const text of documents) for (const _ of text) count++;
  return count;
}
