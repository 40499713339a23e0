/** The package as a user of this Node.js version meets it: by import and by require. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const major = Number(process.versions.node.split(".")[0]);

/** The weights of four one-hot tokens (q = k = v), causal. @param {typeof import("lookback")} lookback @param {number} [threads] */
async function oneHotWeights(lookback, threads = 1) {
  const lb = await lookback.createLookback({ threads });
  assert.equal(lb.threads, threads);
  const tokens = { data: new Float32Array(16).map((_, i) => (i % 5 === 0 ? 1 : 0)), dims: [4, 4] };
  const { weights } = lb.attention(tokens, tokens, tokens, { heads: 1, causal: true, weights: "softmax" });
  assert.ok(weights);
  assert.deepEqual(weights.dims, [1, 1, 4, 4]);
  const result = {
    variant: lb.variant,
    fused: lb.fused,
    rows: [0, 1, 2, 3].map((i) => [...weights.data.slice(4 * i, 4 * i + 4)]),
  };
  lb.dispose();
  return result;
}

/** @param {Awaited<ReturnType<typeof oneHotWeights>>} result */
function check({ variant, rows }) {
  assert.equal(variant, major >= 22 ? "relaxed" : "simd");
  assert.deepEqual(rows[0], [1, 0, 0, 0]);
  rows.forEach((row, i) => {
    const sum = row.reduce((a, b) => a + b, 0);
    assert.ok(Math.abs(sum - 1) < 1e-6, `row ${i} sums to ${sum}`);
    row.forEach((weight, j) => {
      // The token's own score is scale · 1 = 1/√4, the others' are 0.
      const expected = j > i ? 0 : Math.exp(i === j ? 0.5 : 0) / (i + Math.exp(0.5));
      if (j > i) assert.equal(weight, 0);
      else assert.ok(Math.abs(weight - expected) < 1e-6, `weight of ${i}, ${j}: ${weight}, expected ${expected}`);
    });
  });
}

test("import: the causal weights of four one-hot tokens", async (t) => {
  const result = await oneHotWeights(await import("lookback"));
  t.diagnostic(
    `Node.js ${process.version}: auto chose ${result.variant}${result.fused ? ", which fuses multiply-add here" : ""}`,
  );
  check(result);
});

test("require: the same from CommonJS", async () => {
  const require = createRequire(import.meta.url);
  check(await oneHotWeights(require("lookback")));
});

test("import and require: the same with two threads", async () => {
  check(await oneHotWeights(await import("lookback"), 2));
  const require = createRequire(import.meta.url);
  check(await oneHotWeights(require("lookback"), 2));
});

test("a program with threads that were not ended ends by itself", () => {
  const script = `import { createLookback } from "lookback";
    const lb = await createLookback({ threads: 3 });
    const x = { data: new Float32Array(400 * 64).fill(0.1), dims: [1, 1, 400, 64] };
    console.log(lb.threads, lb.attention(x, x, x).output.dims.join());`;
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const options = { encoding: /** @type {const} */ ("utf8"), cwd: root, timeout: 20_000 };
  assert.equal(execFileSync(process.execPath, ["--input-type=module", "-e", script], options).trim(), "3 1,1,400,64");
});
