import { readPerHead } from "./lists.js";

/** R17: 2^(−8h/H) for h = 1 … H, as published; else those of the largest power of two P < H, then every second one of 2P's. */
function publishedSlopes(heads: number): Float32Array {
  const power = 2 ** Math.floor(Math.log2(heads));
  return Float32Array.from(
    { length: heads },
    (_, h) => 2 ** (h < power ? (-8 * (h + 1)) / power : (-4 * (2 * (h - power) + 1)) / power),
  );
}

/** The slopes per head that `alibi` (true, or slopes) asks for. */
export function alibiSlopes(value: unknown, heads: number): Float32Array | undefined {
  if (value === undefined || value === false) return undefined;
  return value === true ? publishedSlopes(heads) : readPerHead(value, "alibi", heads, -Number.MAX_VALUE);
}
