/**
 * Attention over given numbers, in a page and in Node.js alike: in a page it is imported; in Node.js it is a program that reads a
 * task and writes its results. Results are text, for JSON knows no infinities.
 */

/** @typedef {{ variant: "simd" | "relaxed", threads: number, tensors: { data: number[], dims: number[] }[], calls: object[] }} Task */

/**
 * @param {typeof import("lookback").createLookback} createLookback
 * @param {Task} task
 */
export async function attend(createLookback, { variant, threads, tensors, calls }) {
  const lb = await createLookback({ variant, threads });
  try {
    const [q, k, v] = /** @type {import("lookback").Tensor[]} */ (
      tensors.map(({ data, dims }) => ({ data: Float32Array.from(data), dims }))
    );
    if (!q || !k || !v) throw new Error("queries, keys and values are wanted");
    const results = calls.map((options) => {
      const { output, weights, logSumExp } = lb.attention(q, k, v, options);
      return [output, weights, logSumExp].map((tensor) => Array.from(tensor?.data ?? [], String));
    });
    return { variant: lb.variant, fused: lb.fused, threads: lb.threads, results };
  } finally {
    lb.dispose();
  }
}

if (globalThis.process?.argv[1]?.endsWith("attend.mjs")) {
  const { createLookback } = await import("lookback");
  const { text } = await import("node:stream/consumers");
  console.log(JSON.stringify(await attend(createLookback, JSON.parse(await text(process.stdin)))));
}
