/**
 * How much a long causal call needs beyond its inputs and output, which are tensors in wasm memory here. What counts is what the process grows
 * by: wasm memory itself grows in steps larger than what is asked for, and pages that nobody touches cost nothing.
 */
import { createLookback } from "lookback";

/** @typedef {{ variant: import("../core/types.ts").Variant, length: number }} Task */

const [heads, headDim] = [12, 64];
/** Bytes that a process grows and shrinks by of itself. */
const NOISE = 500_000;

/** What the process takes once it has given back what it no longer needs, which it does bit by bit. */
async function settled() {
  const collect = /** @type {() => void} */ (Reflect.get(globalThis, "gc"));
  let least = Number.POSITIVE_INFINITY;
  for (let calm = 0; calm < 5; ++calm) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const now = process.memoryUsage.rss();
    if (now < least) calm = 0;
    least = Math.min(least, now);
  }
  return least;
}

process.once("message", async (/** @type {Task} */ { variant, length }) => {
  const lb = await createLookback({ variant });
  const tensors = (/** @type {number} */ rows) => {
    const dims = [1, heads, rows, headDim];
    const data = Float32Array.from({ length: heads * rows * headDim }, (_, n) => Math.sin(n));
    return [data, data, data, null].map((values) => lb.tensor(values, dims));
  };
  const attend = (/** @type {ReturnType<typeof tensors>} */ [q, k, v, output]) => {
    if (!q || !k || !v || !output) throw new Error("four tensors are needed");
    lb.attention(q, k, v, { causal: true, out: { output } });
  };
  // The engine compiles at the first calls.
  const small = tensors(64);
  for (let n = 0; n < 50; ++n) attend(small);
  const large = tensors(length);
  const before = await settled();
  attend(large);
  const growth = process.memoryUsage.rss() - before;
  if (growth < -NOISE) throw new Error(`the process shrank by ${-growth} bytes: something else was given back`);
  const extraBytes = Math.max(0, growth);
  process.send?.({ extraBytes }, () => process.exit(0));
});
