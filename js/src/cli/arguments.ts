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

/** 'all', or whole numbers with commas between them. */
export const choice = (text: string): "all" | number[] => (text === "all" ? text : text.split(",").map(count));

/** An option that may come several times. */
export const collected = (text: string, before: string[] | undefined): string[] => [...(before ?? []), text];
