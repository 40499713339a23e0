/** How options are read: what does not fit is a usage error that names the option. */
import { InvalidArgumentError } from "commander";

const numberOf =
  (accepted: string, accepts: (value: number) => boolean) =>
  (text: string): number => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (accepts(value)) return value;
    throw new InvalidArgumentError(`It must be ${accepted}.`);
  };

export const count = numberOf("a whole number ≥ 0", (n) => Number.isSafeInteger(n) && n >= 0);
export const positiveCount = numberOf("a whole number ≥ 1", (n) => Number.isSafeInteger(n) && n >= 1);
export const decimal = numberOf("a number ≥ 0", (n) => n >= 0 && n < Infinity);
export const positiveDecimal = numberOf("a number > 0", (n) => n > 0 && n < Infinity);
export const share = numberOf("a number from 0 to 1", (n) => n >= 0 && n <= 1);
export const positiveShare = numberOf("a number above 0 and at most 1", (n) => n > 0 && n <= 1);

/** 'all', or whole numbers with commas between them. */
export function choice(text: string): "all" | number[] {
  if (text === "all") return text;
  if (/^\d+(,\d+)*$/.test(text)) return text.split(",").map(Number);
  throw new InvalidArgumentError("It must be a whole number, several with commas between them (0,2), or all.");
}

/** A text that says something. */
export function text(given: string): string {
  if (given === "") throw new InvalidArgumentError("It must not be empty.");
  return given;
}

/** An option that may come several times. */
export function collected(given: string, before: string[] | undefined): string[] {
  return [...(before ?? []), text(given)];
}
