/** Numbers that depend on a seed and their place only: no state to keep, and by operations that every engine does alike. */
import { mulberry32 } from "../random.js";

/** MurmurHash3 (Appleby, x86, 32 bits) of whole numbers: 32 well-mixed bits. */
export function hash32(...words: readonly number[]): number {
  let hash = 0;
  for (const word of words) {
    let mixed = Math.imul(word, 0xcc9e2d51);
    mixed = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
    hash ^= mixed;
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  hash ^= 4 * words.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A seed (a safe integer) as its lower and upper 32 bits. */
export const halvesOf = (seed: number): readonly [number, number] => [seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0];

/** A whole number from 0 to count − 1, by 53 bits of its place. */
export function drawBelow(count: number, ...place: readonly number[]): number {
  const bits = (hash32(0, ...place) >>> 5) * 2 ** 26 + (hash32(1, ...place) >>> 6);
  return Math.floor((bits / 2 ** 53) * count);
}

/** Draws from the normal distribution by the polar method (Marsaglia and Bray 1964). */
export function normals(seed: number): () => number {
  const uniform = mulberry32(seed);
  let kept: number | undefined;
  return () => {
    if (kept !== undefined) {
      const value = kept;
      kept = undefined;
      return value;
    }
    for (;;) {
      const [x, y] = [2 * uniform() - 1, 2 * uniform() - 1];
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const size = Math.sqrt((-2 * logarithm(square)) / square);
      kept = y * size;
      return x * size;
    }
  };
}

const TERMS = 12;
const { LN2 } = Math;

/** ln x for x > 0 in double precision. Math.log may differ in its last bit between engines. */
export function logarithm(x: number): number {
  let [mantissa, exponent] = [x, 0];
  for (; mantissa < Math.SQRT1_2; exponent--) mantissa *= 2;
  for (; mantissa > Math.SQRT2; exponent++) mantissa /= 2;
  // ln m = 2 artanh((m − 1) / (m + 1)), whose argument is below 0.172.
  const z = (mantissa - 1) / (mantissa + 1);
  let sum = 0;
  for (let n = TERMS; n >= 0; n--) sum = sum * z * z + 1 / (2 * n + 1);
  return exponent * LN2 + 2 * z * sum;
}

/** cos(π·x) for x from 0 to 1, in double precision; for Math.cos see logarithm(). */
export function cosineOfTurn(x: number): number {
  if (x > 0.5) return -cosineOfTurn(1 - x);
  const square = -((Math.PI * x) ** 2);
  let sum = 1;
  for (let n = TERMS; n >= 1; n--) sum = 1 + (sum * square) / (2 * n * (2 * n - 1));
  return sum;
}
