/** Small tools of the API's tests: tensors of easy numbers, and errors looked at closely. */
import { expect } from "@jest/globals";
import { type ErrorCode, type Lookback, LookbackError, type Tensor } from "lookback";

export const product = (dims: readonly number[]): number => dims.reduce((total, dim) => total * dim, 1);

/** Numbers that differ from place to place and from seed to seed, in (−1, 1). */
export function tensor(dims: readonly number[], seed = 1): Tensor {
  const data = Float32Array.from({ length: product(dims) }, (_, i) => Math.sin((i + 1) * 12.9898 + seed * 78.233));
  return { data, dims: [...dims] };
}

/** Four one-hot tokens. */
export const oneHot = (): Tensor => ({
  data: Float32Array.from({ length: 16 }, (_, i) => (i % 5 === 0 ? 1 : 0)),
  dims: [1, 4, 4],
});

export function caught(action: () => unknown): LookbackError {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(LookbackError);
    return error as LookbackError;
  }
  throw new Error("no error was thrown");
}

export async function rejected(promise: Promise<unknown>): Promise<LookbackError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(LookbackError);
  return error as LookbackError;
}

/** The error has this code, and its message shows each of `shown`. */
export function expectError(error: LookbackError, code: ErrorCode, ...shown: string[]): void {
  expect({ code: error.code, message: error.message }).toMatchObject({ code });
  for (const part of shown) expect(error.message).toContain(part);
}

/** The instance still calculates: four one-hot tokens under a causal mask. */
export function expectAlive(lb: Lookback): void {
  const x = oneHot();
  const { weights } = lb.attention(x, x, x, { heads: 1, causal: true, weights: "softmax" });
  expect(Array.from(weights.data.subarray(0, 4))).toEqual([1, 0, 0, 0]);
  for (let i = 0; i < 4; i++) {
    const row = weights.data.subarray(i * 4, i * 4 + 4);
    expect(row.reduce((sum, w) => sum + w, 0)).toBeCloseTo(1, 6);
    for (let j = i + 1; j < 4; j++) expect(row[j]).toBe(0);
  }
}
