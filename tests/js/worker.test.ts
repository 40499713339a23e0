/** B6: the same calls as promises, off the main thread. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createLookback, type Lookback, LookbackError, masks, mergeAttention, type Tensor } from "lookback";
import { createLookbackWorker, type WorkerLookback } from "lookback/worker";
import { caught, expectError, oneHot, rejected, tensor } from "./support/helpers.ts";

let lb: Lookback;
let worker: WorkerLookback;
beforeAll(async () => {
  lb = await createLookback();
  worker = await createLookbackWorker();
});
afterAll(() => {
  lb.dispose();
  worker.dispose();
});

/** Everything in it as bytes and plain values: arrays that arrive are of another realm. */
function plain(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("hex");
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]));
}
const expectSame = (actual: unknown, expected: unknown) => expect(plain(actual)).toEqual(plain(expected));

/** A call of some tenths of a second. */
const long = (): [Tensor, Tensor, Tensor] =>
  [1, 2, 3].map((seed) => tensor([2048, 512], seed)) as [Tensor, Tensor, Tensor];
const LONG = { heads: 8, causal: true } as const;

describe("the same bits", () => {
  test("B6: an instance says what it is", () => {
    const { variant, fused, threads, disposed } = lb;
    expect(worker).toMatchObject({ variant, fused, threads, disposed });
  });

  test("B6: attention, in slices, with all that it returns", async () => {
    const [q, k, v] = [tensor([2, 4, 70, 8], 1), tensor([2, 2, 130, 8], 2), tensor([2, 2, 130, 5], 3)];
    const options = {
      kvHeads: 2,
      causal: true,
      queryOffset: "end",
      mask: masks.causal(70, 130, 60).or({ data: new Uint8Array(130).fill(1), dims: [130] }),
      bias: tensor([1, 70, 130], 4),
      alibi: true,
      sinks: [0.5, 0.25, -1, 2],
      weights: { kind: "softmax", heads: [3, 0], queries: [2, 40] },
      logSumExp: true,
      summary: { topK: 3, entropy: true, distance: true, map: [7, 9] },
    } as const;
    expectSame(await worker.attention(q, k, v, options), lb.attention(q, k, v, options));
  });

  test("B6, R20: gradients, in slices", async () => {
    const x = tensor([2, 60, 24]);
    const options = { heads: 4, causal: true, bias: tensor([60, 60], 2), dropout: { p: 0.2, seed: 3 } } as const;
    const { output, logSumExp } = await worker.attention(x, x, x, { ...options, logSumExp: true });
    const given = { ...options, output, logSumExp, gradOutput: tensor([2, 60, 24], 4), gradBias: true } as const;
    expectSame(await worker.attentionBackward(x, x, x, given), lb.attentionBackward(x, x, x, given));
  });

  test("B6: parts are merged, rows are turned", async () => {
    const x = tensor([1, 20, 8]);
    const options = { heads: 2, logSumExp: true } as const;
    const parts = [x, tensor([1, 5, 8], 2)].map((keys) => lb.attention(x, keys, keys, options));
    expectSame(await worker.mergeAttention(parts, { sinks: [1, 2] }), mergeAttention(parts, { sinks: [1, 2] }));
    const rotary = { heads: 2, base: 500, scaling: { type: "linear", factor: 2 } } as const;
    expectSame(await worker.rotary(x, rotary), lb.rotary(x, rotary));
  });

  test("B6: layers, their caches and memories", async () => {
    const config = { embedDim: 24, heads: 4, kvHeads: 2, seed: 3 };
    const here = lb.multiHeadAttention(config);
    const there = await worker.multiHeadAttention(config);
    expect(there.config).toEqual(here.config);
    expectSame(await there.state(), here.state());
    const state = Object.fromEntries(
      Object.entries(here.state()).map(([name, { dims }], n) => [name, tensor(dims, n)]),
    );
    here.load(state);
    await there.load(state);
    const [x, memory] = [tensor([2, 9, 24]), tensor([2, 33, 24], 5)];
    expectSame(
      await there.forward(x, { causal: true, weights: "softmax" }),
      here.forward(x, { causal: true, weights: "softmax" }),
    );

    const projected = await there.project(memory);
    expect([projected.batch, projected.keyLength]).toEqual([2, 33]);
    expectSame(await there.forward(x, { memory: projected }), here.forward(x, { memory: here.project(memory) }));

    const sizes = { batch: 2, capacity: 20 };
    const [own, other] = [here.kvCache(sizes), await there.kvCache(sizes)];
    expect([other.capacity, other.config]).toEqual([20, own.config]);
    for (const part of [tensor([2, 9, 24], 7), tensor([2, 1, 24], 8)])
      expectSame(await there.step(part, other), here.step(part, own));
    expect([await other.length, await other.lengths, await other.firstPosition]).toEqual([10, [10, 10], 0]);
    expectSame(await other.read(), own.read());
    const copy = await other.clone();
    await copy.truncate(4);
    expect([await copy.length, await other.length]).toEqual([4, 10]);
    const bytes = await other.save();
    expectSame(bytes, own.save());
    await copy.load(bytes);
    expectSame(await copy.read(), own.read());
    await copy.reset();
    expect(await copy.length).toBe(0);
    const [k, v] = [tensor([2, 3, 12], 1), tensor([2, 3, 12], 2)];
    await copy.append(k, v, { keyLengths: [3, 1] });
    expect(await copy.lengths).toEqual([3, 1]);
  });

  test("B6: linear layers, tensors of the worker, and what is found wrong", async () => {
    const x = tensor([5, 6]);
    const [here, there] = [lb.linear({ inputs: 6, outputs: 4 }), await worker.linear({ inputs: 6, outputs: 4 })];
    expectSame(await there.forward(x), here.forward(x));
    const kept = await worker.tensor(x.data, x.dims);
    expect(kept.dims).toEqual([5, 6]);
    const target = await worker.tensor(null, [5, 4]);
    expect(await there.forward(kept, { out: { output: target } })).toBe(target);
    expectSame(await target.read(), here.forward(x).data);
    const { output } = await worker.attention(kept, kept, kept, { heads: 2, out: { output: kept } });
    expect(output).toBe(kept);
    expectSame(await kept.read(), lb.attention(x, x, x, { heads: 2 }).output.data);
    await kept.write(new Float32Array(30));
    expectSame(await kept.read(), new Float32Array(30));

    const layers = [
      lb.multiHeadAttention({ embedDim: 6, heads: 2 }),
      await worker.multiHeadAttention({ embedDim: 6, heads: 2 }),
    ] as const;
    const plain = layers[0].backward(x, { gradOutput: x });
    const out = { gradX: kept, parameters: { in_proj_weight: await worker.tensor(null, [18, 6]) } };
    const gradients = await layers[1].backward(x, { gradOutput: x, out });
    expect([gradients.gradX, gradients.parameters.in_proj_weight]).toEqual([kept, out.parameters.in_proj_weight]);
    expectSame(await kept.read(), plain.gradX.data);
    expectSame(await out.parameters.in_proj_weight.read(), plain.parameters.in_proj_weight!.data);
    expectSame(gradients.parameters.in_proj_bias, plain.parameters.in_proj_bias);
    const arrays = { gradOutput: x, out: { parameters: { in_proj_bias: new Float32Array(18) } } };
    expectError(await rejected(layers[1].backward(x, arrays as never)), "bad-out", "out.parameters.in_proj_bias");

    const wrong = { heads: 1, mask: masks.causal(12).not() };
    const z = tensor([12, 4]);
    const [found, expected] = [await worker.diagnose(z, z, z, wrong), lb.diagnose(z, z, z, wrong)];
    expect(found.map(({ code }) => code)).toContain("mask-inverted");
    expectSame([...found], [...expected]);
    expect([String(found), found.examined]).toEqual([String(expected), expected.examined]);
    expect(Object.keys(await worker.memory())).toEqual(Object.keys(lb.memory()));
  });
});

test("R15, B6: a worker may have threads of its own, which change no bit", async () => {
  const own = await createLookbackWorker({ threads: 2 });
  expect([own.threads, own.threadsReason]).toEqual([2, undefined]);
  const operands = long();
  const told: number[] = [];
  const result = await own.attention(...operands, { ...LONG, onProgress: (done) => told.push(done) });
  own.dispose();
  expectSame(result, lb.attention(...operands, LONG));
  expect(told.length).toBeGreaterThan(2);
});

describe("what goes in", () => {
  test("B6: arrays are copied, only what a view shows; with transfer they are handed over", async () => {
    const file = tensor([4, 4096]).data;
    const x = { data: file.subarray(64, 128), dims: [8, 8] };
    const expected = lb.attention(x, x, x, { heads: 2 });
    expectSame(await worker.attention(x, x, x, { heads: 2 }), expected);
    expect(file.length).toBe(4 * 4096);
    expectSame(await worker.attention(x, x, x, { heads: 2, transfer: true }), expected);
    expect(file.length).toBe(0);
    const error = await rejected(worker.attention(x, x, x, { heads: 2 }));
    expectError(error, "detached-buffer", "q", "transferred");
  });

  test("B1, B6: shared memory, onnxruntime's getters, Buffers and Maps are read like by a call of lb", async () => {
    const source = tensor([6, 4]);
    const shared = new Float32Array(new SharedArrayBuffer(96));
    shared.set(source.data);
    class OrtTensor {
      get data() {
        return source.data;
      }
      get dims() {
        return source.dims;
      }
    }
    const mask = { data: Buffer.from(new Uint8Array(36).fill(1)), dims: [6, 6] };
    const expected = lb.attention(source, source, source, { heads: 1 });
    expectSame(
      await worker.attention({ data: shared, dims: [6, 4] }, new OrtTensor(), source, { heads: 1, mask }),
      expected,
    );
    const [here, there] = [lb.linear({ inputs: 4, outputs: 4 }), await worker.linear({ inputs: 4, outputs: 4 })];
    await there.load(new Map(Object.entries(here.state())) as never);
    expectSame(await there.forward(source), here.forward(source));
  });
});

describe("errors", () => {
  const x = oneHot();
  const y = { data: [1, 2], dims: [1, 2] };
  test.each<[string, (on: Lookback) => unknown]>([
    ["an unknown option", (on) => on.attention(x, x, x, { heads: 1, isCausal: true } as never)],
    ["a misfit", (on) => on.attention(x, tensor([1, 4, 6]), x, { heads: 1 })],
    ["a function", (on) => on.attention(x, x, x, { heads: () => 1 } as never)],
    ["no tensor", (on) => on.attention(x, x, new Date() as never)],
    ["no floats", (on) => on.attention(x, x, y as never)],
    ["a mask as a bias", (on) => on.attention(x, x, x, { heads: 1, bias: masks.causal(4) as never })],
    ["keys that are missing", (on) => on.attention({ values: x } as never, x, x)],
    ["a config", (on) => on.multiHeadAttention({ embedDim: 10, heads: 3 })],
    ["dims", (on) => on.tensor([1, 2, 3], [2, 2])],
  ])("B4, B6: %s is refused with the same code and message", async (_, call) => {
    const expected = caught(() => call(lb));
    const { code, message } = await rejected(call(worker as unknown as Lookback) as Promise<unknown>);
    expect({ code, message }).toEqual({ code: expected.code, message: expected.message });
  });

  test("B4, B6: an option about the call that does not exist names the nearest one", async () => {
    const there = await worker.linear({ inputs: 4, outputs: 4 });
    expectError(await rejected(there.state({ sginal: null } as never)), "unknown-option", "sginal", "'signal'");
    expectError(await rejected(worker.memory({ signal: 3 } as never)), "bad-option", "AbortSignal", "3");
    expectError(await rejected(worker.memory({ onProgress: 1 } as never)), "bad-option", "function");
  });

  test("B6: what lives elsewhere is refused, out into an array of the page too", async () => {
    const [own, other] = [lb.tensor([1, 2], [1, 2]), await createLookbackWorker()];
    const theirs = await other.tensor([1, 2], [1, 2]);
    for (const foreign of [own, theirs]) {
      const error = await rejected(worker.attention(foreign as never, x, x));
      expectError(error, "other-instance", "read()");
    }
    other.dispose();
    const error = await rejected(
      worker.attention(x, x, x, { heads: 1, out: { output: new Float32Array(16) } } as never),
    );
    expectError(error, "bad-out", "out.output", "tensor()", "Float32Array");
  });

  test("B6: a start that fails says why, and leaves no worker behind", async () => {
    const start = rejected(createLookbackWorker({ wasmUrl: "/nowhere/lookback.wasm", variant: "simd" }));
    expectError(await start, "wasm-unreachable", "/nowhere/lookback.wasm");
    expectError(await rejected(createLookbackWorker({ variant: "fast" } as never)), "bad-option", "'relaxed'");
  });

  test("B5, B6: wasmUrl may be a function", async () => {
    const asked: string[] = [];
    const wasm = (variant: string) => new URL(`../../dist/wasm/lookback-${variant}.wasm`, import.meta.url);
    const own = await createLookbackWorker({
      wasmUrl(variant, threaded) {
        asked.push(`${variant} ${threaded}`);
        return wasm(variant);
      },
    });
    expect(asked).toContain(`${own.variant} false`);
    expectSame(await own.attention(x, x, x, { heads: 1 }), lb.attention(x, x, x, { heads: 1 }));
    own.dispose();
  });
});

describe("signals and progress", () => {
  test("B6: progress rises to 1, and the bits are those of one piece", async () => {
    const told: number[] = [];
    const result = await worker.attention(...long(), { ...LONG, onProgress: (fraction) => told.push(fraction) });
    expectSame(result, lb.attention(...long(), LONG));
    expect(told.length).toBeGreaterThan(3);
    expect(told[0]).toBe(0);
    expect(told.at(-1)).toBe(1);
    expect(told).toEqual([...told].sort((a, b) => a - b));
  });

  test("B6: a signal ends a long call soon, with its reason; a cache keeps what it held", async () => {
    const cache = await worker.kvCache({ batch: 1, kvHeads: 8, headDim: 64, capacity: 4096 });
    await cache.append(tensor([5, 512], 1), tensor([5, 512], 2));
    const before = await cache.read();
    const controller = new AbortController();
    const reason = new Error("enough");
    let aborted = 0;
    const onProgress = (fraction: number) => {
      if (fraction === 0 || aborted > 0) return;
      aborted = performance.now();
      controller.abort(reason);
    };
    const call = worker.attention(...long(), { ...LONG, cache, signal: controller.signal, onProgress });
    await expect(call).rejects.toBe(reason);
    expect(performance.now() - aborted).toBeLessThan(250);
    expect(await cache.length).toBe(5);
    expectSame(await cache.read(), before);
  });

  test("B6: a layer is divided, too: its projections, its attention, its cache", async () => {
    const config = { embedDim: 512, heads: 8, rotary: {} };
    const [here, there] = [lb.multiHeadAttention(config), await worker.multiHeadAttention(config)];
    const x = tensor([2, 1500, 512]);
    const [told, cache] = [[] as number[], await there.kvCache({ batch: 2, capacity: 1500 })];
    const result = await there.forward(x, { causal: true, logSumExp: true, onProgress: (done) => told.push(done) });
    expectSame(result, here.forward(x, { causal: true, logSumExp: true }));
    expect(told.length).toBeGreaterThan(2);
    for (const part of [0, 1e-6]) {
      const controller = new AbortController();
      const onProgress = (done: number) => done >= part && controller.abort("enough");
      await expect(there.step(x, cache, { signal: controller.signal, onProgress })).rejects.toBe("enough");
      expect(await cache.length).toBe(0);
    }
    expectSame((await there.step(x, cache)).output, here.step(x, here.kvCache({ batch: 2, capacity: 1500 })).output);
    expect(await cache.length).toBe(1500);
  });

  test("B6: a long diagnosis tells its progress and can be ended, and gives back what it held", async () => {
    const [q, k, v] = long();
    const own = await createLookbackWorker();
    const [told, controller] = [[] as number[], new AbortController()];
    const onProgress = (done: number) => {
      told.push(done);
      if (done > 0.1) controller.abort("enough");
    };
    await expect(own.diagnose(q, k, v, { ...LONG, signal: controller.signal, onProgress })).rejects.toBe("enough");
    expect(told.length).toBeGreaterThan(2);
    expect(told.at(-1)).toBeLessThan(0.9);
    expect((await own.memory()).allocations).toBe(0);
    expect(String(await own.diagnose(q, k, v, LONG))).toBe(String(lb.diagnose(q, k, v, LONG)));
    own.dispose();
  });

  test("B6: a call that waits is given up at once, one with an aborted signal is not made", async () => {
    const controller = new AbortController();
    const order: string[] = [];
    const operands = long();
    const first = worker.attention(...operands, LONG).then(() => order.push("first"));
    const second = worker
      .attention(...operands, { ...LONG, signal: controller.signal })
      .catch((reason) => order.push(reason));
    controller.abort("second");
    await Promise.all([first, second]);
    expect(order).toEqual(["second", "first"]);
    await expect(worker.memory({ signal: AbortSignal.abort("never") })).rejects.toBe("never");
    await expect(createLookbackWorker({ signal: AbortSignal.abort("not even that") })).rejects.toBe("not even that");
  });

  test("B6: a start can be given up", async () => {
    const controller = new AbortController();
    const start = createLookbackWorker({ signal: controller.signal });
    controller.abort("later");
    await expect(start).rejects.toBe("later");
  });

  test("B6: an onProgress that throws ends its call with that error", async () => {
    const error = new Error("no view");
    const onProgress = () => {
      throw error;
    };
    await expect(worker.attention(...long(), { ...LONG, onProgress })).rejects.toBe(error);
    expectSame(
      await worker.attention(oneHot(), oneHot(), oneHot(), { heads: 1 }),
      lb.attention(oneHot(), oneHot(), oneHot(), { heads: 1 }),
    );
  });
});

describe("order and ends", () => {
  test("B6: calls run in the order in which they are made", async () => {
    const x = await worker.tensor([0], [1]);
    const seen = await Promise.all(
      [1, 2, 3, 4].flatMap((n) => [x.write([n]).then(() => 0), x.read().then(([value]) => value)]),
    );
    expect(seen).toEqual([0, 1, 0, 2, 0, 3, 0, 4]);
  });

  test("B3, B6: disposal frees memory in the worker, is idempotent, and later use is an error", async () => {
    const { allocations } = await worker.memory();
    const x = await worker.tensor([1, 2], [2]);
    expect((await worker.memory()).allocations).toBe(allocations + 1);
    const read = x.read();
    x.dispose();
    x.dispose();
    expect(x.disposed).toBe(true);
    expect(Array.from(await read)).toEqual([1, 2]);
    expect((await worker.memory()).allocations).toBe(allocations);
    expectError(await rejected(x.read()), "disposed", "The tensor");
    expectError(await rejected(worker.rotary(x, { heads: 1 })), "disposed", "The tensor");
  });

  test("B3, B6: disposing of the worker rejects what has not ended, and everything after", async () => {
    const own = await createLookbackWorker();
    const x = await own.tensor([1, 2], [1, 2]);
    const operands = long();
    const pending = [own.attention(...operands, LONG), own.memory()].map(rejected);
    own.dispose();
    own.dispose();
    for (const error of await Promise.all(pending)) expectError(error, "disposed", "createLookbackWorker()");
    expect([own.disposed, x.disposed]).toEqual([true, true]);
    expectError(await rejected(own.memory()), "disposed");
    expectError(await rejected(x.read()), "disposed");
    expect(new LookbackError("disposed", "")).toBeInstanceOf(Error);
  });
});
