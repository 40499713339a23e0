/** The ONNX project's own cases of Attention (opset 23 and 24), read from beside the repository where they are. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import type { AttentionOptions, AttentionResult, Lookback, TensorLike, WeightsKind } from "lookback";
import { holds, worst } from "./accuracy-check.ts";
import type { ReferenceOptions, Shape } from "./reference.ts";
import { foldHeads, refer, splitHeads } from "./reference-data.ts";
import { describeVariants } from "./support/instances.ts";

interface OnnxTensor {
  dtype: "f32" | "bool" | "i64";
  dims: number[];
  data: (number | "NaN" | "Inf" | "-Inf")[];
}

interface OnnxCase {
  name: string;
  opset: number;
  attrs: Partial<
    Record<"is_causal" | "kv_num_heads" | "q_num_heads" | "qk_matmul_output_mode" | "scale" | "softcap", number>
  >;
  inputs: string[];
  outputs: string[];
  tensors: Record<string, OnnxTensor>;
}

const folder = new URL("../../../shared/conformance/", import.meta.url);
const present = existsSync(new URL("onnx-attention.json", folder));
const cases: OnnxCase[] = present ? JSON.parse(readFileSync(new URL("onnx-attention.json", folder), "utf8")) : [];
const KINDS: readonly WeightsKind[] = ["scores", "capped", "masked", "softmax"];
/** The cases' numbers are float32 results of numpy, whose inputs lie in [0, 1). */
const TOLERANCE = 2e-6;

/** Rules that a case needs and the package does not have yet; a rule that arrives leaves this list. */
const NOT_YET: ReadonlySet<string> = new Set(["R5 padding", "R16 cache"]);

/** What a case needs beyond plain attention, from its inputs alone. */
function needs({ inputs }: OnnxCase): string[] {
  const found: string[] = [];
  if (inputs.includes("nonpad_kv_seqlen")) found.push("R5 padding");
  if (inputs.includes("past_key")) found.push("R16 cache");
  return found;
}

const special: Record<string, number> = { NaN, Inf: Infinity, "-Inf": -Infinity };
const numbers = ({ data }: OnnxTensor) => data.map((x) => (typeof x === "string" ? special[x]! : x));
const floats = (tensor: OnnxTensor) => ({ data: Float32Array.from(numbers(tensor)), dims: tensor.dims });

/** ONNX's attributes and inputs in the package's words. */
function optionsOf({ attrs, inputs, outputs, tensors }: OnnxCase): AttentionOptions {
  const options: AttentionOptions & { keyLengths?: BigInt64Array } = {};
  if (attrs.q_num_heads !== undefined)
    Object.assign(options, { heads: attrs.q_num_heads, kvHeads: attrs.kv_num_heads });
  if (attrs.scale !== undefined) options.scale = attrs.scale;
  if (attrs.softcap) options.softcap = attrs.softcap;
  const padded = inputs.includes("nonpad_kv_seqlen");
  if (padded) options.keyLengths = BigInt64Array.from(numbers(tensors.nonpad_kv_seqlen!), BigInt);
  if (attrs.is_causal) {
    options.causal = true;
    // With a cache the offset is its length; with padding the last query stands at the last valid key; else ONNX starts at the top left.
    if (!inputs.includes("past_key")) options.queryOffset = padded ? "end" : "start";
  }
  const mask = inputs.includes("attn_mask") ? tensors.attn_mask : undefined;
  if (mask?.dtype === "bool") options.mask = { data: Uint8Array.from(numbers(mask)), dims: mask.dims };
  else if (mask) options.bias = floats(mask);
  if (outputs.includes("qk_matmul_output")) options.weights = KINDS[attrs.qk_matmul_output_mode ?? 0]!;
  return options;
}

/** What R16 will offer; until it is there no case that needs it runs. */
interface WithCache {
  kvCache(config: { batch: number; kvHeads: number; headDim: number; valueDim: number; capacity: number }): {
    append(k: TensorLike, v: TensorLike): void;
    read(): { keys: TensorLike<Float32Array>; values: TensorLike<Float32Array> };
    dispose(): void;
  };
}

function runCase(lb: Lookback, item: OnnxCase): AttentionResult {
  const { inputs, tensors } = item;
  const call = (options: object) => lb.attention(floats(tensors.Q!), floats(tensors.K!), floats(tensors.V!), options);
  const options = optionsOf(item);
  if (!inputs.includes("past_key")) return call(options);
  const [pastKey, pastValue] = [floats(tensors.past_key!), floats(tensors.past_value!)];
  const [batch, kvHeads, , headDim] = pastKey.dims as [number, number, number, number];
  const capacity = tensors.present_key!.dims[2]!;
  const cache = (lb as unknown as WithCache).kvCache({
    batch,
    kvHeads,
    headDim,
    valueDim: pastValue.dims[3]!,
    capacity,
  });
  cache.append(pastKey, pastValue);
  const result = call({ ...options, cache });
  const { keys, values } = cache.read();
  cache.dispose();
  expect(Array.from(keys.data)).toEqual(Array.from(floats(tensors.present_key!).data));
  expect(Array.from(values.data)).toEqual(Array.from(floats(tensors.present_value!).data));
  return result;
}

/** [B, H, L, width] of an operand in either layout, with what a cache held before it. */
function operandOf(tensor: OnnxTensor, heads: number | undefined, past?: OnnxTensor) {
  const data = Float32Array.from(numbers(tensor));
  const [batch, second, third, fourth] = tensor.dims as [number, number, number, number?];
  const own =
    fourth === undefined
      ? {
          batch,
          heads: heads!,
          length: second,
          width: third / heads!,
          data: splitHeads(data, batch, second, heads!, third / heads!),
        }
      : { batch, heads: second, length: third, width: fourth, data };
  if (!past) return own;
  const before = numbers(past);
  const pastLength = past.dims[2]!;
  const joined: number[] = [];
  for (let head = 0; head < batch * own.heads; head++) {
    joined.push(...before.slice(head * pastLength * own.width, (head + 1) * pastLength * own.width));
    joined.push(...own.data.subarray(head * own.length * own.width, (head + 1) * own.length * own.width));
  }
  return { ...own, length: pastLength + own.length, data: Float32Array.from(joined) };
}

/** The reference on any case: it already knows the rules that the package does not have yet. */
function referCase(item: OnnxCase) {
  const { tensors, attrs, inputs, outputs } = item;
  const cached = inputs.includes("past_key");
  const q = operandOf(tensors.Q!, attrs.q_num_heads);
  const k = operandOf(tensors.K!, attrs.kv_num_heads, cached ? tensors.past_key : undefined);
  const v = operandOf(tensors.V!, attrs.kv_num_heads, cached ? tensors.past_value : undefined);
  const lengths = { batch: q.batch, queryLength: q.length, keyLength: k.length };
  const shape: Shape = { ...lengths, heads: q.heads, kvHeads: k.heads, headDim: q.width, valueDim: v.width };
  const options = optionsOf(item) as ReferenceOptions;
  if (cached) options.queryOffset = tensors.past_key!.dims[2]!;
  const result = refer({ shape, q: q.data, k: k.data, v: v.data }, options);
  const folded = tensors.Y!.dims.length === 3;
  return {
    output: folded ? foldHeads(result.output, q.batch, q.heads, q.length, v.width) : result.output,
    weights: outputs.includes("qk_matmul_output") ? result[KINDS[attrs.qk_matmul_output_mode ?? 0]!] : undefined,
  };
}

/** Float32 sums of up to a few dozen products: relative where a number is large, absolute near 0; ONNX's lowest number stands for −∞. */
function expectTensor(actual: TensorLike<Float32Array> | undefined, expected: OnnxTensor, what: string): void {
  expect(actual?.dims).toEqual(expected.dims);
  expectNumbers(actual!.data, expected, what);
}

function expectNumbers(actual: ArrayLike<number>, expected: OnnxTensor, what: string): void {
  const wanted = numbers(expected).map((x) => (x <= -3.4e38 ? -Infinity : x));
  const allowed = (n: number) => TOLERANCE * Math.max(1, Math.abs(wanted[n]!));
  holds(worst(actual, wanted, allowed), what);
}

if (!present) test.skip("ONNX conformance: ../shared/conformance is not beside this checkout", () => {});
else {
  test("R1: all 46 ONNX cases are here and say what they need", () => {
    expect(cases).toHaveLength(46);
    for (const { op, attrs, inputs } of cases as (OnnxCase & { op: string })[]) {
      expect(op).toBe("Attention");
      const known = ["is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap"];
      expect(Object.keys(attrs).filter((name) => !known.includes(name))).toEqual([]);
      const inputNames = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen", ""];
      expect(inputs.filter((name) => !inputNames.includes(name))).toEqual([]);
    }
  });

  test("R5, R16: the reference gives the results of all cases, of those with padding or a cache too", () => {
    for (const item of cases) {
      const { output, weights } = referCase(item);
      expectNumbers(output, item.tensors.Y!, `${item.name}: Y`);
      if (weights) expectNumbers(weights, item.tensors.qk_matmul_output!, `${item.name}: qk_matmul_output`);
    }
  });

  describeVariants((lb) => {
    for (const item of cases) {
      const missing = needs(item).filter((rule) => NOT_YET.has(rule));
      if (missing.length > 0) {
        test.todo(`${item.name}: not yet, needs ${missing.join(" and ")}`);
        continue;
      }
      test(`${rulesOf(item)}: ${item.name}`, () => {
        const { output, weights } = runCase(lb, item);
        expectTensor(output, item.tensors.Y!, "Y");
        if (item.outputs.includes("qk_matmul_output"))
          expectTensor(weights, item.tensors.qk_matmul_output!, "qk_matmul_output");
      });
    }
  });
}

/** The rules a case speaks of, for its name. */
function rulesOf({ attrs, inputs, outputs, tensors }: OnnxCase): string {
  const rules = ["R1"];
  if (attrs.scale !== undefined) rules.push("R2");
  if (inputs.includes("attn_mask")) rules.push(tensors.attn_mask!.dtype === "bool" ? "R3" : "R4");
  if (attrs.is_causal) rules.push("R6");
  if (tensors.Q!.dims[1] !== tensors.K!.dims[1] && tensors.Q!.dims.length === 4) rules.push("R11");
  if (attrs.q_num_heads !== attrs.kv_num_heads) rules.push("R11");
  if (outputs.includes("qk_matmul_output")) rules.push("R12");
  return rules.join(" ");
}
