/** B3: who owns wasm memory, and that it comes back. */
import { expect, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { caught, expectAlive, expectError, tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";
import { inProcess } from "./support/process.js";

const held = (lb: Lookback) => {
  const { bytes, allocations } = lb.memory();
  return { bytes, allocations };
};

describeVariants((lb, variant) => {
  test("B3: 10,000 calls of changing shapes leave the memory held where it was", () => {
    const kept = lb.tensor(null, [3]);
    const before = held(lb);
    const data = new Float32Array(2 * 11 * 39).map((_, i) => Math.sin(i));
    const of = (...dims: number[]) => ({
      data: data.subarray(
        0,
        dims.reduce((a, b) => a * b),
      ),
      dims,
    });
    for (let n = 0; n < 10_000; n++) {
      const [batch, heads, length, width] = [1 + (n % 2), 1 + (n % 3), 1 + (n % 11), 1 + (n % 13)];
      const x = of(batch, length, heads * width);
      if (n % 5 === 0) {
        const q = lb.tensor(x.data, x.dims);
        lb.attention(q, x, x, { heads, causal: true, logSumExp: true, out: { output: q } });
        q.dispose();
      } else if (n % 97 === 0) {
        const layer = lb.multiHeadAttention({ embedDim: heads * width, heads });
        const memory = layer.project(x);
        layer.load(layer.state());
        layer.forward(x, { causal: true, weights: { heads: [0] } });
        memory.dispose();
        layer.dispose();
      } else if (n % 7 === 0) {
        caught(() => lb.attention(x, x, x, { heads, bias: tensor([length + 1, length]) }));
      } else {
        lb.attention(x, x, x, {
          heads,
          causal: n % 2 === 0,
          weights: n % 3 === 0 ? "softmax" : { kind: "scores", heads: [0] },
        });
      }
    }
    expect(held(lb)).toEqual(before);
    kept.dispose();
    expect(held(lb)).toEqual({ bytes: before.bytes - 12, allocations: before.allocations - 1 });
  });

  test("B3: what lives is counted, and the scratch memory of calls is not", () => {
    const before = held(lb);
    const one = lb.tensor(null, [10, 10]);
    expect(held(lb)).toEqual({ bytes: before.bytes + 400, allocations: before.allocations + 1 });
    const x = tensor([1, 300, 64]);
    lb.attention(x, x, x, { heads: 4, weights: "softmax" });
    expect(held(lb)).toEqual({ bytes: before.bytes + 400, allocations: before.allocations + 1 });
    const layer = lb.multiHeadAttention({ embedDim: 8, heads: 2 });
    const two = held(lb);
    expect(two.allocations).toBe(before.allocations + 2);
    expect(two.bytes).toBeGreaterThanOrEqual(before.bytes + 400 + 4 * 4 * 8 * 9);
    layer.load(layer.state());
    expect(held(lb)).toEqual(two);
    layer.dispose();
    one.dispose();
    expect(held(lb)).toEqual(before);
  });

  test("B3: a tensor is read, written, and dead after its disposal, which may come twice", () => {
    const before = held(lb);
    const one = lb.tensor([1, 2, 3, 4], [2, 2]);
    expect(one.dims).toEqual([2, 2]);
    const copy = one.read();
    one.write([5, 6, 7, 8]);
    expect([...copy]).toEqual([1, 2, 3, 4]);
    expect([...one.read()]).toEqual([5, 6, 7, 8]);
    expectError(
      caught(() => one.write([1, 2])),
      "dims-data-mismatch",
      "4",
      "2",
    );
    expect([...one.read()]).toEqual([5, 6, 7, 8]);
    expect(lb.tensor(null, [3]).read()).toEqual(new Float32Array(3));
    expect(one.disposed).toBe(false);
    one.dispose();
    one.dispose();
    one[Symbol.dispose]();
    expect(one.disposed).toBe(true);
    for (const use of [
      () => one.read(),
      () => one.write([1, 2, 3, 4]),
      () => lb.attention(one, one, one, { heads: 1 }),
    ]) {
      expectError(caught(use), "disposed", "disposed");
    }
    expectError(
      caught(() => lb.attention(tensor([2, 2]), tensor([2, 2]), tensor([2, 2]), { heads: 1, out: { output: one } })),
      "disposed",
      "out.output",
    );
    expectAlive(lb);
    expect(held(lb).allocations).toBe(before.allocations + 1); // the one of zeros, which is nobody's now
  });

  test("B3: a layer and its projected memory are dead after their disposal", () => {
    const layer = lb.multiHeadAttention({ embedDim: 4, heads: 2 });
    const x = tensor([1, 3, 4]);
    const memory = layer.project(x);
    memory.dispose();
    memory.dispose();
    expectError(
      caught(() => layer.forward(x, { memory })),
      "disposed",
      "projected memory",
    );
    const state = layer.state();
    layer.dispose();
    layer[Symbol.dispose]();
    expect([layer.disposed, memory.disposed]).toEqual([true, true]);
    for (const use of [() => layer.forward(x), () => layer.project(x), () => layer.load(state), () => layer.state()]) {
      expectError(caught(use), "disposed", "layer");
    }
    expectAlive(lb);
  });

  test("B3: a disposed instance takes everything of it along, and no other instance", async () => {
    const own = await createLookback({ variant });
    const x = own.tensor([1, 2], [1, 2]);
    const layer = own.multiHeadAttention({ embedDim: 2, heads: 1 });
    own.dispose();
    own[Symbol.dispose]();
    expect([own.disposed, x.disposed, layer.disposed]).toEqual([true, true, true]);
    const plain = tensor([1, 2]);
    const uses = [
      () => own.attention(plain, plain, plain, { heads: 1 }),
      () => own.tensor(null, [1]),
      () => own.multiHeadAttention({ embedDim: 2, heads: 1 }),
      () => own.memory(),
      () => x.read(),
      () => x.write([1, 2]),
      () => layer.forward(plain),
    ];
    for (const use of uses) expectError(caught(use), "disposed", "instance was disposed");
    x.dispose();
    layer.dispose();
    expectAlive(lb);
  });

  test("B3: a tensor of another instance is refused", async () => {
    const other = await createLookback({ variant });
    const foreign = other.tensor([1, 2], [1, 2]);
    const plain = tensor([1, 2]);
    expectError(
      caught(() => lb.attention(foreign, plain, plain, { heads: 1 })),
      "other-instance",
      "q",
      "another lookback instance",
    );
    expect([...foreign.read()]).toEqual([1, 2]);
    other.dispose();
    expectAlive(lb);
  });

  // In a process of its own: in the realms of Jest's test files, once some are gone, Node.js 20 tells no registry of anything any more.
  test("B3: what was forgotten comes back in the end", () => {
    const script = `
      import { createLookback } from "lookback";
      const lb = await createLookback({ variant: "${variant}" });
      const kept = lb.tensor(null, [10]);
      for (let i = 0; i < 20; i++) lb.tensor(null, [1000]);
      const before = lb.memory().allocations;
      for (let i = 0; i < 500 && lb.memory().allocations > 1; i++) {
        gc();
        await new Promise((done) => setTimeout(done, 10));
      }
      console.log(JSON.stringify([before, lb.memory().allocations, lb.memory().bytes, kept.read().length]));`;
    expect(inProcess(script, "--expose-gc")).toEqual([21, 1, 40, 10]);
  }, 30_000);
});
