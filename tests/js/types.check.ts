/** The public types, looked at by the compiler alone: results are as precise as the options, and unknown options are refused. */

import { type AttentionOptions, createLookback, type Lookback, masks } from "lookback";
import type { WorkerLookback } from "lookback/worker";
import type { Tensor as OnnxTensor } from "onnxruntime-web";

declare const lb: Lookback;
const x = { data: new Float32Array(4), dims: [1, 4] };
lb.attention(x, x, x).weights?.data;
lb.attention(x, x, x, { heads: 1, weights: "softmax" }).weights.data;
lb.attention(x, x, x, { heads: 1, weights: { heads: [0] }, logSumExp: true }).logSumExp.data;
// @ts-expect-error not asked
lb.attention(x, x, x, { heads: 1 }).weights.data;
// @ts-expect-error unknown
lb.attention(x, x, x, { heads: 1, isCausal: true });
declare const t: ReturnType<typeof lb.tensor>;
lb.attention(t, t, t, { heads: 1, out: { output: t } }).output.read();
declare const onnx: OnnxTensor;
lb.attention(onnx, onnx, onnx, { heads: 1, mask: onnx, keyMask: onnx, keyLengths: onnx }).output.data;
// What transformers.js calls DataArray.
declare const transformers: { type: string; dims: number[]; data: Float32Array | BigInt64Array | unknown[] };
lb.attention(transformers, transformers, transformers, { heads: 1, mask: transformers });
// @ts-expect-error numbers in a list are no float data
lb.attention({ data: [1], dims: [1, 1] }, x, x, { heads: 1 });
// @ts-expect-error neither are they in keyMask
lb.attention(x, x, x, { heads: 1, keyMask: "1" });
const o: AttentionOptions = { heads: 1, causal: true };
lb.attention(x, x, x, o).output.data;
lb.attention(x, x, x, { ...o, weights: "scores" }).weights.data;
const layer = lb.multiHeadAttention({ embedDim: 4, heads: 2 });
layer.forward(x, { causal: true, weights: "softmax" }).weights.data;
layer.forward(x, { memory: layer.project(x) });
layer.backward(x, { gradOutput: x }).parameters.in_proj_bias?.data;
layer.backward(x, { gradOutput: x, out: { gradX: t } }).gradX.read();
layer.backward(x, { gradOutput: x, out: { parameters: { in_proj_bias: new Float32Array(12) } } }).parameters.x?.data;
// @ts-expect-error some of them are wasm tensors
layer.backward(x, { gradOutput: x, out: { parameters: { in_proj_weight: t } } }).parameters.x?.data;
// @ts-expect-error unknown
layer.backward(x, { gradOutput: x, out: { output: t } });
// @ts-expect-error unknown
layer.forward(x, { heads: 2 });
const maybe: { heads: number; weights?: "softmax" } = { heads: 1 };
lb.attention(x, x, x, maybe).weights?.data;
const linear = lb.linear({ inputs: 4, outputs: 2, bias: false });
linear.forward(x).data;
linear.forward(x, { out: { output: t } }).read();
linear.load(linear.state());
// @ts-expect-error unknown
linear.forward(x, { output: t });
// @ts-expect-error no outputs
lb.linear({ inputs: 4 });
masks.causal(3, 4, "end").and(masks.from({ data: [true], dims: [1] }));
createLookback({ variant: "simd" });
const summary = lb.attention(x, x, x, { heads: 1, summary: { topK: 2, map: [1, 1] } }).summary;
summary.topK.indices.data.fill(0);
summary.map.data.fill(0);
// @ts-expect-error not asked
summary.entropy.data.fill(0);
// @ts-expect-error not asked
lb.attention(x, x, x, { heads: 1 }).summary.map;
lb.attention(x, x, x, { heads: 1, window: { left: 2 }, keyLengths: [1], keyMask: [1], alibi: true, sinks: [0] });
const cache = lb.kvCache({ batch: 1, kvHeads: 1, headDim: 4, capacity: 8, dtype: "int8" });
lb.attention(x, null, null, { heads: 1, cache }).output.data;
cache.append(x, x, { keyMask: [true] });
lb.rotary(x, { heads: 1, scaling: { type: "yarn", factor: 4, originalLength: 64 } }).data;
lb.rotary(t, { heads: 1, out: { output: t } }).read();
// @ts-expect-error no factor
lb.rotary(x, { heads: 1, scaling: { type: "linear" } });
const turned = lb.multiHeadAttention({ embedDim: 4, heads: 2, rotary: { base: 500 } });
turned.step(x, turned.kvCache({ batch: 1, capacity: 4 }), { weights: "softmax" }).weights.data;
// @ts-expect-error a step is causal
turned.step(x, cache, { causal: false });

declare const worker: WorkerLookback;
(await worker.attention(x, x, x, { heads: 1, weights: "softmax", onProgress: (done) => done.toFixed() })).weights.data;
// @ts-expect-error not asked
(await worker.attention(x, x, x, { heads: 1, transfer: true })).weights.data;
// @ts-expect-error unknown
worker.attention(x, x, x, { heads: 1, isCausal: true });
// @ts-expect-error a tensor of the page's own instance
worker.attention(t, x, x, { heads: 1 });
const remote = await worker.tensor([1], [1, 1]);
(
  await (await worker.attention(remote, remote, x, { heads: 1, bias: remote, out: { output: remote } })).output.read()
).at(0);
// @ts-expect-error an array of the page's cannot be written from there
worker.attention(x, x, x, { heads: 1, out: { output: new Float32Array(4) } });
const there = await worker.multiHeadAttention({ embedDim: 4, heads: 2, signal: AbortSignal.timeout(1) });
const remembered = await there.project(x, undefined, { transfer: true });
(await there.forward(x, { memory: remembered, logSumExp: true })).logSumExp.data;
// @ts-expect-error what lives in the page
there.forward(x, { cache });
(await there.step(x, await there.kvCache({ batch: 1, capacity: 2 }), { weights: "scores" })).weights.data;
await there.load(await there.state(), { signal: AbortSignal.timeout(1) });
