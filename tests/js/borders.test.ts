/** B1 and B2: what may come in, and how results go out. */
import { runInNewContext } from "node:vm";
import { expect, test } from "@jest/globals";
import type { FloatTensor, Lookback, Tensor } from "lookback";
import { tensor } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";

const [q, k, v] = [tensor([2, 5, 8], 1), tensor([2, 5, 8], 2), tensor([2, 5, 8], 3)];
const options = { heads: 2, causal: true } as const;
const bits = (values: Float32Array): number[] => Array.from(new Uint32Array(values.slice().buffer));
const expected = (lb: Lookback): number[] => bits(lb.attention(q, k, v, options).output.data);

describeVariants((lb) => {
  const inputs: Record<string, () => FloatTensor> = {
    "a view with byteOffset": () => {
      const larger = new Float32Array(q.data.length + 7).fill(9);
      larger.set(q.data, 3);
      return { data: larger.subarray(3, 3 + q.data.length), dims: q.dims };
    },
    "shared memory": () => {
      const shared = new Float32Array(new SharedArrayBuffer(q.data.byteLength));
      shared.set(q.data);
      return { data: shared, dims: q.dims };
    },
    "an array of another realm": () =>
      runInNewContext("({ data: new Float32Array(values), dims: Array.from(dims) })", {
        values: [...q.data],
        dims: q.dims,
      }),
    "dims as a typed array": () => ({ data: q.data, dims: Int32Array.from(q.dims) as unknown as number[] }),
    "a class with getters, as onnxruntime's": () =>
      new (class {
        readonly type = "float32";
        get data() {
          return q.data;
        }
        get dims() {
          return q.dims;
        }
      })(),
    // transformers.js hands out proxies that take every integer-like name for an index.
    "a proxy, as transformers.js'": () =>
      new Proxy(
        Object.assign(() => {}, { data: q.data, dims: q.dims }),
        {
          get: (target, key) => (/^\d+$/.test(String(key)) ? undefined : Reflect.get(target, key)),
        },
      ),
    "a tensor in wasm memory": () => lb.tensor(q.data, q.dims),
  };

  test.each(Object.entries(inputs))("B1: %s gives the bits of a plain tensor", (_name, make) => {
    const given = make();
    expect(bits(lb.attention(given, k, v, options).output.data)).toEqual(expected(lb));
    if ("dispose" in given) given.dispose();
  });

  const Float16 = (globalThis as { Float16Array?: new (values: Iterable<number>) => ArrayBufferView }).Float16Array;
  (Float16 ? test : test.skip)("B1: Float16Array is converted", () => {
    const halves = new Float16!(q.data);
    const widened = Float32Array.from(halves as unknown as ArrayLike<number>);
    expect(bits(lb.attention({ data: halves, dims: q.dims }, k, v, options).output.data)).toEqual(
      bits(lb.attention({ data: widened, dims: q.dims }, k, v, options).output.data),
    );
  });

  test("B1: inputs are left as they are", () => {
    const copies = [q, k, v].map(({ data }) => data.slice());
    lb.attention(q, k, v, { ...options, weights: "scores", logSumExp: true });
    [q, k, v].forEach(({ data }, i) => {
      expect(data).toEqual(copies[i]);
    });
  });

  test("B2: results are plain copies: later calls, transfer and disposal do not touch them", () => {
    const first = lb.attention(q, k, v, { ...options, weights: "softmax", logSumExp: true });
    const before = [first.output, first.weights, first.logSumExp].map(({ data }) => data.slice());
    lb.attention(tensor([3, 9, 8], 7), tensor([3, 9, 8], 8), tensor([3, 9, 8], 9), options);
    [first.output, first.weights, first.logSumExp].forEach(({ data }, i) => {
      expect(data).toEqual(before[i]);
    });
    const moved = structuredClone(first.output.data, { transfer: [first.output.data.buffer] });
    expect(moved).toEqual(before[0]);
    expect(bits(lb.attention(q, k, v, options).output.data)).toEqual(bits(before[0]!));
  });

  test("B2: outputs made before the memory grew stay right", () => {
    const want = expected(lb);
    const early = lb.attention(q, k, v, options).output;
    const kept = lb.tensor(q.data, q.dims);
    const { reserved } = lb.memory();
    const filler = lb.tensor(null, [Math.ceil(reserved / 4) + 1024]);
    expect(lb.memory().reserved).toBeGreaterThan(reserved);
    expect(bits(early.data)).toEqual(want);
    expect(kept.read()).toEqual(q.data);
    expect(bits(lb.attention(kept, k, v, options).output.data)).toEqual(want);
    filler.dispose();
    kept.dispose();
  });

  test("B2: out writes into arrays and tensors of the caller", () => {
    const want = lb.attention(q, k, v, { ...options, weights: "softmax", logSumExp: true });
    const padded = new Float32Array(q.data.length + 10).fill(5);
    const output = padded.subarray(4, 4 + q.data.length);
    const weights: Tensor = { data: new Float32Array(2 * 2 * 5 * 5), dims: [2, 2, 5, 5] };
    const logSumExp = lb.tensor(null, [2, 2, 5]);
    const result = lb.attention(q, k, v, {
      ...options,
      weights: "softmax",
      logSumExp: true,
      out: { output, weights, logSumExp },
    });
    expect(result.output).toEqual({ data: want.output.data, dims: [2, 5, 8] });
    expect(result.output.data).toBe(output);
    expect(result.weights.data).toBe(weights.data);
    expect(bits(weights.data)).toEqual(bits(want.weights.data));
    expect(result.logSumExp).toBe(logSumExp);
    expect(bits(logSumExp.read())).toEqual(bits(want.logSumExp.data));
    expect([...padded.subarray(0, 4), ...padded.subarray(4 + q.data.length)]).toEqual(new Array(10).fill(5));
    logSumExp.dispose();
  });

  test.each(["q", "k", "v"])("B2: out may be %s itself, as an array and in wasm memory", (name) => {
    const want = expected(lb);
    const own = { q, k, v };
    const array = own[name as "q"].data.slice();
    const plain = { ...own, [name]: { data: array, dims: q.dims } };
    lb.attention(plain.q, plain.k, plain.v, { ...options, out: { output: array } });
    expect(bits(array)).toEqual(want);

    const inWasm = lb.tensor(own[name as "q"].data, q.dims);
    const mixed = { ...own, [name]: inWasm };
    lb.attention(mixed.q, mixed.k, mixed.v, { ...options, out: { output: inWasm } });
    expect(bits(inWasm.read())).toEqual(want);
    inWasm.dispose();
  });

  test("B2: out may be the bias, in wasm memory", () => {
    const [x, y] = [tensor([1, 2, 4], 4), tensor([1, 2, 4], 5)];
    const bias = tensor([1, 2, 4], 6);
    const options = { heads: 2, kvHeads: 2, bias: { data: bias.data.subarray(0, 4), dims: [2, 2] } };
    const want = lb.attention(x, y, y, { ...options, weights: "masked" }).weights;
    const inWasm = lb.tensor(want.data, want.dims);
    const again = lb.attention(x, y, y, { heads: 2, bias: inWasm, weights: "masked" }).weights;
    lb.attention(x, y, y, { heads: 2, bias: inWasm, weights: "masked", out: { weights: inWasm } });
    expect(bits(inWasm.read())).toEqual(bits(again.data));
    inWasm.dispose();
  });

  test("B1: masks and wasm tensors of one call may be one object given twice", () => {
    const x = lb.tensor(q.data, q.dims);
    expect(bits(lb.attention(x, x, x, options).output.data)).toEqual(bits(lb.attention(q, q, q, options).output.data));
    x.dispose();
  });

  test("R1: a 2-D input is a batch of one, and its output is 2-D", () => {
    const flat = (t: Tensor): Tensor => ({ data: t.data.slice(0, 40), dims: [5, 8] });
    const deep = (t: Tensor): Tensor => ({ data: t.data.slice(0, 40), dims: [1, 5, 8] });
    const two = lb.attention(flat(q), flat(k), flat(v), { ...options, weights: "softmax" });
    const three = lb.attention(deep(q), deep(k), deep(v), { ...options, weights: "softmax" });
    expect(two.output).toEqual({ data: three.output.data, dims: [5, 8] });
    expect(two.weights).toEqual(three.weights);
  });

  test("R12: asked heads and rows are those of the whole, in the order asked", () => {
    const all = lb.attention(q, k, v, { ...options, weights: "softmax" });
    const part = lb.attention(q, k, v, { ...options, weights: { heads: [1, 0], queries: [1, 4] } });
    expect(part.weights.dims).toEqual([2, 2, 3, 5]);
    expect(bits(part.output.data)).toEqual(bits(all.output.data));
    for (let b = 0; b < 2; b++)
      for (let h = 0; h < 2; h++)
        for (let i = 1; i < 4; i++) {
          const from = ((b * 2 + (1 - h)) * 5 + i) * 5;
          const at = ((b * 2 + h) * 3 + (i - 1)) * 5;
          expect(bits(part.weights.data.slice(at, at + 5))).toEqual(bits(all.weights.data.slice(from, from + 5)));
        }
    expect(lb.attention(q, k, v, { ...options, weights: { heads: [] } }).weights.dims).toEqual([2, 0, 5, 5]);
  });

  test("R21: no queries give an empty output, no keys zero rows", () => {
    const none = lb.attention(tensor([1, 0, 8]), tensor([1, 3, 8]), tensor([1, 3, 8]), {
      heads: 2,
      causal: true,
      weights: "softmax",
    });
    expect(none.output).toEqual({ data: new Float32Array(0), dims: [1, 0, 8] });
    expect(none.weights.dims).toEqual([1, 2, 0, 3]);
    const zero = lb.attention(tensor([1, 3, 8]), tensor([1, 0, 8]), tensor([1, 0, 8]), {
      heads: 2,
      causal: true,
      logSumExp: true,
    });
    expect(zero.output.data).toEqual(new Float32Array(24));
    expect(zero.logSumExp.data).toEqual(new Float32Array(6).fill(-Infinity));
  });

  test("R6: offsets by word, number and batch row", () => {
    const short = tensor([2, 2, 8], 4);
    const seen = (queryOffset: "start" | "end" | number | number[]) =>
      Array.from(lb.attention(short, k, v, { ...options, queryOffset, weights: "softmax" }).weights.data, (w) =>
        w > 0 ? 1 : 0,
      );
    const rows = (...ends: number[]) => ends.flatMap((end) => [0, 1, 2, 3, 4].map((j) => (j <= end ? 1 : 0)));
    const perHead = (a: number[], b: number[]) => [...a, ...a, ...b, ...b];
    expect(seen("start")).toEqual(perHead(rows(0, 1), rows(0, 1)));
    expect(seen("end")).toEqual(perHead(rows(3, 4), rows(3, 4)));
    expect(seen(1)).toEqual(perHead(rows(1, 2), rows(1, 2)));
    expect(seen([-1, 2])).toEqual(perHead(rows(-1, 0), rows(2, 3)));
  });
});
