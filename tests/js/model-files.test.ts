/** What is wrong with a model's files is said before anything is allocated. */
import { describe, expect, test } from "@jest/globals";
import { openFolder } from "../../dist/model/open-folder.js";
import type { OpenedModel } from "../../dist/model/opened.js";
import { openSource } from "../../dist/model/sources.js";
import { expectError, rejected } from "./support/helpers.ts";
import {
  asFile,
  filesOf,
  gpt2Shapes,
  type LlamaLike,
  llamaShapes,
  type ModelFolder,
  randomTensors,
  VOCABULARY,
} from "./support/model-folders.ts";
import { record } from "./support/recording.ts";
import { encodeFloats, joined, safetensors, withHeader } from "./support/safetensors.ts";

const LLAMA: LlamaLike = {
  model_type: "llama",
  vocab_size: VOCABULARY,
  hidden_size: 8,
  intermediate_size: 12,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  max_position_embeddings: 64,
};
const llama = (): ModelFolder => ({ config: { ...LLAMA }, tensors: randomTensors(llamaShapes(LLAMA), 1) });

const open = (files: readonly File[]): Promise<OpenedModel> => {
  const source = openSource({}, files);
  if (!("folder" in source)) throw new Error("no folder");
  return openFolder(source.folder, undefined);
};
/** A model whose weights are this file. */
const withWeights = (bytes: Uint8Array<ArrayBuffer>): Promise<OpenedModel> =>
  open([...filesOf(llama()).slice(0, 3), asFile("model.safetensors", bytes)]);

describe("a safetensors file that is not what it says", () => {
  const good = safetensors(llama().tensors);
  const headerLength = Number(new DataView(good.buffer).getBigUint64(0, true));
  const data = good.slice(8 + headerLength);
  const header = (): Record<string, { dtype: string; shape: number[]; data_offsets: number[] }> =>
    JSON.parse(new TextDecoder().decode(good.subarray(8, 8 + headerLength)));
  const NORM = "model.norm.weight";
  const length = (value: bigint) => {
    const copy = good.slice();
    new DataView(copy.buffer).setBigUint64(0, value, true);
    return copy;
  };
  const changed = (change: (tensors: ReturnType<typeof header>) => void) => {
    const tensors = header();
    change(tensors);
    return withHeader(JSON.stringify(tensors), data);
  };
  const entry = (fields: object) => changed((tensors) => Object.assign(tensors[NORM]!, fields));

  const refusals: [string, Uint8Array<ArrayBuffer>, string[]][] = [
    ["empty", new Uint8Array(0), ["cut off", "at least 8"]],
    ["a header of 2^63 bytes", length(2n ** 63n), ["no safetensors file"]],
    ["a header of 90 MB that is not there", length(90_000_000n), ["no safetensors file", "90000000"]],
    ["a web page", joined(new TextEncoder().encode("<!doctype html><title>x</title>")), ["no safetensors", "<!doctyp"]],
    ["no JSON", withHeader("{]", data), ["not JSON"]],
    ["no UTF-8", withHeader("  ", data).fill(0xff, 8, 10), ["not JSON"]],
    ["a list", withHeader("[1, 2]", data), ["JSON object"]],
    ["an entry that is a number", changed((t) => Object.assign(t, { extra: 7 })), ['"extra"', "7"]],
    [
      "a name that comes twice",
      withHeader(JSON.stringify(header()).replace("{", `{"${NORM}": {"a": 1},`), data),
      [`"${NORM}" twice`],
    ],
    ["offsets beyond the end", entry({ data_offsets: [1e6, 1e6 + 32] }), ["hole", "9216"]],
    ["offsets that overlap", entry({ data_offsets: [0, 32] }), ["overlaps"]],
    ["offsets backwards", entry({ data_offsets: [64, 32] }), [NORM, "[64, 32]"]],
    ["offsets that are null", entry({ data_offsets: [null, 32] }), [NORM, "null"]],
    ["a negative dimension", entry({ shape: [-8] }), [NORM, "[-8]"]],
    ["a dimension of 1e300", entry({ shape: [1e300] }), [NORM, "1e+300"]],
    ["a shape of other bytes", entry({ shape: [9] }), [NORM, "32 bytes", "36"]],
    ["a type of other bytes", entry({ dtype: "F16" }), [NORM, "32 bytes", "16"]],
    ["integers", entry({ dtype: "I32" }), [NORM, "I32", "F32, F16, BF16"]],
    ["a type nobody knows", entry({ dtype: "Q4" }), [NORM, "Q4"]],
    ["a byte missing", good.slice(0, -1), ["cut off"]],
    ["a byte too many", joined(good, new Uint8Array(1)), ["too long"]],
    [
      "a tensor missing",
      safetensors(without(llama().tensors, "model.layers.1.mlp.up_proj.weight")),
      ['"layers.1.mlp.up_proj.weight"'],
    ],
    [
      "a tensor too many",
      safetensors({ ...llama().tensors, "model.layers.0.self_attn.q_proj.bias": vector(8) }),
      ["no tensor", "q_proj.bias"],
    ],
    ["a wrong shape", safetensors({ ...llama().tensors, "model.norm.weight": vector(9) }), [NORM, "[9]", "[8]"]],
  ];

  test.each(refusals)("%s → an error that says so", async (_what, bytes, shown) => {
    const error = await rejected(withWeights(bytes));
    expect(["invalid-model", "model-unknown"]).toContain(error.code);
    expectError(error, error.code, ...shown);
  });

  test("and the good one opens", async () => {
    const opened = await withWeights(good);
    expect(opened.weightBytes).toBe(data.length);
    await opened.close();
  });
});

function vector(length: number) {
  return { dims: [length], values: new Float64Array(length) };
}

function without<T>(record: Record<string, T>, name: string): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([key]) => key !== name));
}

describe("config.json", () => {
  const refusals: [string, Record<string, unknown>, string, string[]][] = [
    ["of an unknown family", { model_type: "bert" }, "model-unknown", ['"bert"', "gpt2", "llama", "gemma2"]],
    ["without model_type", { model_type: null }, "model-unknown", ["undefined", "qwen3"]],
    ["without a width", { hidden_size: null }, "invalid-model", ["hidden_size", "undefined"]],
    ["with NaN layers", { num_hidden_layers: "NaN" }, "invalid-model", ["num_hidden_layers", '"NaN"']],
    ["with a billion layers", { num_hidden_layers: 1e9 }, "invalid-model", ["num_hidden_layers", "1024"]],
    ["with half a head", { num_attention_heads: 1.5 }, "invalid-model", ["num_attention_heads", "1.5"]],
    ["with heads that do not divide", { num_attention_heads: 3 }, "embed-dim-not-divisible", ["8", "3"]],
    ["with kv heads that do not divide", { num_key_value_heads: 5 }, "kv-heads-not-divisor", ["5", "2"]],
    ["with an activation nobody has", { hidden_act: "mish" }, "model-unknown", ["mish", "silu"]],
    ["with dynamic scaling", { rope_scaling: { type: "dynamic", factor: 2 } }, "model-unknown", ["dynamic", "yarn"]],
    ["with a scaling without factor", { rope_scaling: { rope_type: "linear" } }, "invalid-model", ["factor"]],
  ];

  test.each(refusals)("%s is refused", async (_what, fields, code, shown) => {
    const folder = llama();
    const error = await rejected(open(filesOf({ ...folder, config: { ...folder.config, ...fields } })));
    expect(error.code).toBe(code);
    for (const part of shown) expect(error.message).toContain(part);
  });

  test("a missing file is named, with the files that are there", async () => {
    const error = await rejected(open(filesOf(llama()).slice(1)));
    expectError(error, "model-unreachable", "config.json", "tokenizer.json");
  });

  test("a config.json that is a web page is called so", async () => {
    const page = new File(["<!doctype html>"], "config.json");
    expectError(await rejected(open([page])), "invalid-model", "config.json", "not JSON");
  });
});

describe("shards", () => {
  const { config, tensors } = llama();
  const names = Object.keys(tensors);
  const part = (from: number, to: number) =>
    safetensors(Object.fromEntries(names.slice(from, to).map((name) => [name, tensors[name]!])));
  const index = (files: readonly unknown[]) =>
    asFile("model.safetensors.index.json", {
      weight_map: Object.fromEntries(names.map((name, i) => [name, files[i % files.length]])),
    });
  const small = () => filesOf({ config, tensors }).slice(0, 3);
  const [first, second] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];

  test("hold together what one file holds", async () => {
    const whole = await record(await open(filesOf({ config, tensors })));
    const files = [index([first, second]), asFile(first, part(0, 9)), asFile(second, part(9, names.length))];
    expect(await record(await open([...small(), ...files]))).toEqual(whole);
  });

  test("a tensor of two shards is refused", async () => {
    const files = [index([first, second]), asFile(first, part(0, 9)), asFile(second, part(8, names.length))];
    expectError(await rejected(open([...small(), ...files])), "invalid-model", names[8]!, first);
  });

  test("a shard that is not there is named", async () => {
    const error = await rejected(open([...small(), index([first, second]), asFile(first, part(0, 9))]));
    expectError(error, "model-unreachable", second);
  });

  test.each(["../other/model.safetensors", "/etc/model.safetensors", "C:\\x.safetensors", 7, "x.bin"])(
    "a shard called %p is refused: only files beside the index are read",
    async (name) => {
      expectError(await rejected(open([...small(), index([name])])), "invalid-model", "weight_map");
    },
  );
});

describe("GPT-2's files", () => {
  const config = { model_type: "gpt2", vocab_size: VOCABULARY, n_embd: 8, n_head: 2, n_layer: 2, n_positions: 16 };

  test("with and without the prefix, the buffers and the head that they may hold, are the same model", async () => {
    const tensors = (prefix: string) => randomTensors(gpt2Shapes(config, prefix), 3);
    const plain = await record(await open(filesOf({ config, tensors: tensors("") })));
    const prefixed = tensors("transformer.");
    const buffers = {
      "transformer.h.0.attn.bias": { dims: [1, 1, 16, 16], values: new Float64Array(256) },
      "transformer.h.1.attn.masked_bias": { dims: [1], values: [-1e4] },
      "lm_head.weight": prefixed["transformer.wte.weight"]!,
    };
    expect(await record(await open(filesOf({ config, tensors: { ...prefixed, ...buffers } })))).toEqual(plain);
  });

  test("Conv1D's matrices arrive transposed, and queries, keys and values apart", async () => {
    const tensors = randomTensors(gpt2Shapes(config, ""), 4);
    const slots = await record(await open(filesOf({ config, tensors })));
    const floats = (slot: string) => new Float32Array(slots.get(slot)!.buffer);
    const fused = Float32Array.from(tensors["h.1.attn.c_attn.weight"]!.values);
    const bias = Float32Array.from(tensors["h.1.attn.c_attn.bias"]!.values);
    ["query", "key", "value"].forEach((part, p) => {
      const weight = floats(`${part}Weight.1`);
      for (let output = 0; output < 8; output++)
        for (let input = 0; input < 8; input++)
          expect(weight[output * 8 + input]).toBe(fused[input * 24 + 8 * p + output]);
      expect(floats(`${part}Bias.1`)).toEqual(bias.slice(8 * p, 8 * p + 8));
    });
  });
});

test("bfloat16 arrives as it is in the file", async () => {
  const tensors = randomTensors(llamaShapes(LLAMA), 5, "BF16");
  const slots = await record(await open(filesOf({ config: { ...LLAMA }, tensors })));
  const bytes = encodeFloats(tensors["model.norm.weight"]!.values, "BF16");
  const bits = Array.from(new Uint16Array(bytes.buffer), (half) => (half << 16) >>> 0);
  expect(Array.from(slots.get("finalNormWeight.0")!)).toEqual(bits);
});
