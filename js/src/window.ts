import { countOrInfinity, type Reader, readOptions } from "./options.js";

/** The core's word for a window side without an end. */
export const UNLIMITED = 2147483647;

const side: Reader<number> = (value, where) => Math.min(UNLIMITED, countOrInfinity(value, where));
export const SIDES = { left: side, right: side };

/** R7: how many keys to the left and right of its position a query sees. */
export const readWindow = (value: unknown, where: string): { left: number; right: number } => ({
  left: UNLIMITED,
  right: UNLIMITED,
  ...readOptions(value, SIDES, where),
});
