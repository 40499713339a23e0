/** What layers, heads and tokens are called. */
import { isObject, kindOf, refuse, show } from "./numbers.js";

export function readNumbers(given: unknown, length: number, where: string): number[] {
  if (given === undefined || given === "all") return Array.from({ length }, (_, index) => index);
  if (!Array.isArray(given) || given.length !== length || !given.every(Number.isInteger))
    return refuse(
      `${where} must be ${length} whole numbers, one for each of them in weights; received ${show(given)}.`,
    );
  return given as number[];
}

/** Texts of tokens: strings, or objects that have one. A list in a list is a batch. */
export function tokenTexts(given: unknown, where: string, batch: number): string[] | undefined {
  if (given === undefined || given === null) return undefined;
  if (!Array.isArray(given)) return refuse(`${where} must be a list of strings; received ${show(given)}.`);
  const list: unknown[] = Array.isArray(given[0]) ? (given[batch] as unknown[]) : given;
  return list.map((token, index) => {
    const text = isObject(token) ? (token.text ?? token.token ?? token.content ?? token.label) : token;
    if (typeof text === "string") return text;
    if (typeof text === "number" || kindOf(text) === "BigInt") return String(text);
    return refuse(`${where}[${index}] must be a string; received ${show(token)}.`);
  });
}
