/** Tools of the diagnosis' tests: healthy inputs, and findings looked at closely. */
import { expect } from "@jest/globals";
import type { Diagnosis, Finding, FindingCode, Tensor } from "lookback";
import { product } from "./helpers.js";

/** Normal numbers (Box-Muller over a 31-bit congruential generator): what trained and untrained projections give, roughly. */
export function normal(dims: readonly number[], seed: number, size = 1): Tensor {
  let state = seed * 7919 + 12345;
  const uniform = () => {
    state = (state * 16807) % 2147483647;
    return state / 2147483647;
  };
  for (let n = 0; n < 8; n++) uniform();
  const data = Float32Array.from(
    { length: product(dims) },
    () => size * Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()),
  );
  return { data, dims: [...dims] };
}

/** q, k, v of the given [B, H, Lq, D], with Lk keys. */
export const operands = (
  [batch, heads, queryLength, headDim]: readonly [number, number, number, number],
  keyLength = queryLength,
  seed = 1,
): [Tensor, Tensor, Tensor] => [
  normal([batch, heads, queryLength, headDim], seed),
  normal([batch, heads, keyLength, headDim], seed + 1),
  normal([batch, heads, keyLength, headDim], seed + 2),
];

export const codes = (diagnosis: Diagnosis): FindingCode[] => diagnosis.map(({ code }) => code);

export function expectHealthy(diagnosis: Diagnosis): void {
  expect(diagnosis.map(({ code, message }) => `${code}: ${message}`)).toEqual([]);
  expect(String(diagnosis)).toMatch(/^Nothing wrong found in .*\.$/);
}

/** The only finding, or the only one of `code`. */
export function only(diagnosis: Diagnosis, code: FindingCode): Finding {
  expect(codes(diagnosis)).toEqual([code]);
  return find(diagnosis, code);
}

export function find(diagnosis: Diagnosis, code: FindingCode): Finding {
  const found = diagnosis.filter((finding) => finding.code === code);
  expect({ codes: codes(diagnosis), number: found.length }).toMatchObject({ number: 1 });
  expect(String(diagnosis)).toContain(`${found[0]!.severity} ${code}: ${found[0]!.message}`);
  return found[0]!;
}

/** The message shows each of these. */
export function expectShown(finding: Finding, ...shown: string[]): void {
  for (const part of shown) expect(finding.message).toContain(part);
}

/** [rows, columns] from a rule. */
export const bits = (rows: number, columns: number, sees: (i: number, j: number) => boolean) => ({
  data: Uint8Array.from({ length: rows * columns }, (_, at) => +sees(Math.floor(at / columns), at % columns)),
  dims: [rows, columns],
});

/** A mask's cells as a bias that holds `low` where hidden. */
export const lowBias = (mask: { data: Uint8Array; dims: readonly number[] }, low: number): Tensor => ({
  data: Float32Array.from(mask.data, (bit) => (bit ? 0 : low)),
  dims: [...mask.dims],
});
