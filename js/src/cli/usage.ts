/** What a command line says wrong, rather than what goes wrong. */
export class UsageError extends Error {}

/** A number, as options take it. */
export const numberOf =
  (accepted: string, accepts: (value: number) => boolean) =>
  (text: string): number => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (accepts(value)) return value;
    throw new UsageError(`${JSON.stringify(text)} is not ${accepted}`);
  };

export const countOf = numberOf("a whole number ≥ 0", (n) => Number.isInteger(n) && n >= 0);
export const positiveOf = numberOf("a whole number ≥ 1", (n) => Number.isInteger(n) && n >= 1);
export const decimalOf = numberOf("a number ≥ 0", (n) => n >= 0 && n < Infinity);

/** 'all', or numbers with commas between them. */
export const listOf = (text: string): "all" | number[] => (text === "all" ? "all" : text.split(",").map(countOf));
