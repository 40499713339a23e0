import { integer, number, type Reader, readOptions, required } from "./options.js";

const OPTIONS = { p: number("a number from 0 to below 1", (p) => p >= 0 && p < 1), seed: integer };

/** R19. Both are asked for: a seed that nobody chose would drop the same weights in every step. */
export const readDropout: Reader<{ p: number; seed: number }> = (value, where) =>
  required(readOptions(value, OPTIONS, where), ["p", "seed"], where);
