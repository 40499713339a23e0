/**
 * How much a long causal call needs beyond its inputs and output, which are tensors in wasm memory here. What counts is what the process grows
 * by: wasm memory itself grows in steps larger than what is asked for, and pages that nobody touches cost nothing.
 */
import { createLookback } from "lookback";

/** @typedef {{ variant: import("../core/types.ts").Variant, length: number }} Task */

const [heads, headDim] = [12, 64];

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
  const collect = /** @type {() => void} */ (Reflect.get(globalThis, "gc"));
  collect();
  const before = process.memoryUsage.rss();
  attend(large);
  collect();
  const extraBytes = Math.max(0, process.memoryUsage.rss() - before);
  process.send?.({ extraBytes }, () => process.exit(0));
});
