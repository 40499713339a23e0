/** Files with bytes flipped or cut off at random places: an error, or a model whose weights are what the file says. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { createLookback, LookbackError } from "lookback";
import { loadDecoder } from "lookback/model";
import { openFolder } from "../../dist/model/open-folder.js";
import { openLlama2c } from "../../dist/model/open-llama2c.js";
import { openSource } from "../../dist/model/sources.js";
import { asFile, filesOf, llamaShapes, randomNumbers, randomTensors, VOCABULARY } from "./support/model-folders.ts";
import { type Recorded, record } from "./support/recording.ts";
import { safetensors } from "./support/safetensors.ts";

const ROUNDS = 1000;

/** One of: cut at a place, one byte changed, eight bytes changed. */
function damaged(bytes: Uint8Array<ArrayBuffer>, next: () => number): { bytes: Uint8Array<ArrayBuffer>; what: string } {
  const integer = (below: number) => Math.floor(((next() + 1) / 2) * below) % below;
  // Headers are short and decide the most: half of the places are in the first kilobyte.
  const place = integer(next() < 0 ? Math.min(1024, bytes.length) : bytes.length);
  const kind = integer(4);
  if (kind === 0) return { bytes: bytes.slice(0, place), what: `cut at ${place}` };
  const copy = bytes.slice();
  const count = kind === 1 ? 8 : 1;
  for (let i = 0; i < count; i++) copy[(place + i) % copy.length]! ^= 1 + integer(255);
  return { bytes: copy, what: `${count} bytes changed at ${place}` };
}

/** Counts errors and loads; a load must be what `expected` reads from the bytes itself. */
async function tryAll(
  original: Uint8Array<ArrayBuffer>,
  seed: number,
  load: (bytes: Uint8Array<ArrayBuffer>) => Promise<Recorded>,
  expected: (bytes: Uint8Array<ArrayBuffer>) => Recorded,
): Promise<{ errors: number; loads: number }> {
  const next = randomNumbers(seed);
  let [errors, loads] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const { bytes, what } = damaged(original, next);
    try {
      const found = await load(bytes);
      const wanted = expected(bytes);
      const same = [...found].every(
        ([slot, bits]) => Buffer.compare(Buffer.from(bits.buffer), Buffer.from(wanted.get(slot)!.buffer)) === 0,
      );
      expect({ what, same, slots: found.size }).toEqual({ what, same: true, slots: wanted.size });
      loads++;
    } catch (error) {
      if (!(error instanceof LookbackError)) throw new Error(`${what}: ${String(error)}`, { cause: error });
      expect(error.message.length).toBeGreaterThan(20);
      errors++;
    }
  }
  return { errors, loads };
}

test("safetensors, at 1000 random places", async () => {
  const config = {
    ...{ model_type: "llama", vocab_size: VOCABULARY, hidden_size: 8, intermediate_size: 12, num_hidden_layers: 1 },
    ...{ num_attention_heads: 2, num_key_value_heads: 1, max_position_embeddings: 64, tie_word_embeddings: true },
  };
  const folder = { config, tensors: randomTensors(llamaShapes(config, { tied: true }), 2) };
  const small = filesOf(folder).slice(0, 3);
  const original = safetensors(folder.tensors);
  const load = async (bytes: Uint8Array<ArrayBuffer>) => {
    const source = openSource({}, [...small, asFile("model.safetensors", bytes)]);
    return record(await openFolder((source as { folder: Parameters<typeof openFolder>[0] }).folder, undefined));
  };
  const slotNames: Record<string, string> = {
    "model.embed_tokens.weight": "tokenEmbedding.0",
    "model.norm.weight": "finalNormWeight.0",
    "model.layers.0.input_layernorm.weight": "attentionNormWeight.0",
    "model.layers.0.self_attn.q_proj.weight": "queryWeight.0",
    "model.layers.0.self_attn.k_proj.weight": "keyWeight.0",
    "model.layers.0.self_attn.v_proj.weight": "valueWeight.0",
    "model.layers.0.self_attn.o_proj.weight": "outputWeight.0",
    "model.layers.0.post_attention_layernorm.weight": "mlpNormWeight.0",
    "model.layers.0.mlp.gate_proj.weight": "gateWeight.0",
    "model.layers.0.mlp.up_proj.weight": "upWeight.0",
    "model.layers.0.mlp.down_proj.weight": "downWeight.0",
  };
  const expected = (bytes: Uint8Array<ArrayBuffer>): Recorded => {
    const length = new DataView(bytes.buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    return new Map(
      Object.entries(slotNames).map(([name, slot]) => {
        const [from, to] = header[name].data_offsets;
        return [slot, new Uint32Array(bytes.slice(8 + length + from, 8 + length + to).buffer)];
      }),
    );
  };
  const { errors, loads } = await tryAll(original, 11, load, expected);
  expect(errors).toBeGreaterThan(300);
  expect(loads).toBeGreaterThan(200);
});

test("config.json, at 1000 random places: an error, or a model that answers, and nothing is left", async () => {
  const config = {
    ...{ model_type: "gemma2", vocab_size: VOCABULARY, hidden_size: 8, intermediate_size: 12, num_hidden_layers: 2 },
    ...{ num_attention_heads: 2, num_key_value_heads: 1, head_dim: 4, max_position_embeddings: 64, sliding_window: 3 },
    ...{ rope_theta: 10000.5, query_pre_attn_scalar: 4, rms_norm_eps: 0.00001, attn_logit_softcapping: 50 },
    ...{ rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 16, beta_fast: 32 } },
  };
  const tensors = randomTensors(llamaShapes(config, { tied: true, postNorms: true }), 3, "F32", 0);
  const [, ...others] = filesOf({ config, tensors });
  const text = JSON.stringify(config);
  const lb = await createLookback();
  const next = randomNumbers(14);
  const integer = (below: number) => Math.floor(((next() + 1) / 2) * below) % below;
  let [loads, errors] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const place = integer(text.length);
    // Digits, signs and dots make numbers of all kinds; the rest breaks the JSON or the names.
    const put = '0123456789-.eE,:{}[]"nx'[integer(23)]!;
    const changed = text.slice(0, place) + put + text.slice(place + integer(3));
    try {
      const model = await loadDecoder(lb, [new File([changed], "config.json"), ...others]);
      const { logits } = model.forward([1, 2, 3, 4, 5]);
      expect(logits.dims).toEqual([1, VOCABULARY]);
      model.dispose();
      loads++;
    } catch (error) {
      if (!(error instanceof LookbackError) || error.code === "core")
        throw new Error(`${changed}: ${String(error)}`, { cause: error });
      errors++;
    }
    expect(lb.memory().allocations).toBe(0);
  }
  lb.dispose();
  expect(loads).toBeGreaterThan(50);
  expect(errors).toBeGreaterThan(300);
}, 60_000);

const folder = new URL("../../../shared/models/stories260K/", import.meta.url);

describe("llama2.c's files", () => {
  if (!existsSync(folder)) {
    test.skip("../shared/models/stories260K is not beside this checkout", () => {});
    return;
  }
  const read = (name: string) => new Uint8Array(readFileSync(new URL(name, folder)));
  const [weights, tokenizer] = [read("stories260K.bin"), read("tok512.bin")];
  const open = async (model: Uint8Array, words: Uint8Array) => {
    const source = openSource({}, { weights: model, tokenizer: words });
    if (!("weights" in source)) throw new Error("no files");
    return openLlama2c(source.weights, source.tokenizer, undefined);
  };

  test("weights, at 1000 random places", async () => {
    // In the order of the file: name, layers, floats of one.
    const order: [string, number, number][] = [
      ["tokenEmbedding", 1, 512 * 64],
      ["attentionNormWeight", 5, 64],
      ["queryWeight", 5, 64 * 64],
      ["keyWeight", 5, 32 * 64],
      ["valueWeight", 5, 32 * 64],
      ["outputWeight", 5, 64 * 64],
      ["mlpNormWeight", 5, 64],
      ["gateWeight", 5, 172 * 64],
      ["downWeight", 5, 172 * 64],
      ["upWeight", 5, 172 * 64],
      ["finalNormWeight", 1, 64],
    ];
    const expected = (bytes: Uint8Array<ArrayBuffer>): Recorded => {
      const slots: Recorded = new Map();
      let at = 28;
      for (const [slot, layers, length] of order)
        for (let layer = 0; layer < layers; layer++) {
          slots.set(`${slot}.${layer}`, new Uint32Array(bytes.slice(at, at + 4 * length).buffer));
          at += 4 * length;
        }
      return slots;
    };
    const load = async (bytes: Uint8Array<ArrayBuffer>) => record(await open(bytes, tokenizer));
    const { errors, loads } = await tryAll(weights, 12, load, expected);
    expect(errors).toBeGreaterThan(200);
    expect(loads).toBeGreaterThan(500);
  });

  test("the tokenizer, at 1000 random places: an error, or every text comes back", async () => {
    const next = randomNumbers(13);
    let loads = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const { bytes } = damaged(tokenizer, next);
      try {
        const opened = await open(weights, bytes);
        await opened.close();
        const ids = opened.tokenizer.encode("Once upon a time, 日本 🎉.", true);
        expect(Math.max(...ids)).toBeLessThan(512);
        expect(opened.tokenizer.decode(ids, false)).toEqual(expect.any(String));
        loads++;
      } catch (error) {
        expect(error).toBeInstanceOf(LookbackError);
      }
    }
    expect(loads).toBeGreaterThan(200);
  });
});
