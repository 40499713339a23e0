/** Trained models: a GPT with all that PyTorch computed of it, and llama2.c's smallest one with what it wrote. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import type { Lookback } from "lookback";
import { Decoder } from "../../dist/model/decoder.js";
import { heapOf } from "../../dist/model/layers.js";
import { type DecoderSettings, PLAIN } from "../../dist/model/settings.js";
import type { Slot } from "../../dist/model/slots.js";
import { holds, worst } from "./accuracy-check.ts";
import { describeVariants } from "./support/instances.ts";

const folder = (name: string) => new URL(`../../../shared/${name}/`, import.meta.url);

const nano = folder("conformance/gpt-nano-sort");
if (!existsSync(nano)) test.skip("M4: ../shared/conformance/gpt-nano-sort is not beside this checkout", () => {});
else {
  type Arrays = Record<string, { shape: number[]; data: string }>;
  const read = (name: string): Arrays => JSON.parse(readFileSync(new URL(name, nano), "utf8"));
  const model = read("gpt-nano-sort-model.json");
  const partials = read("gpt-nano-sort-t0-partials.json");
  const bytesOf = ({ data }: { data: string }): Uint8Array => Uint8Array.from(Buffer.from(data, "base64"));
  const floatsOf = (name: string): Float32Array => new Float32Array(bytesOf(partials[name]!).buffer);
  const settings: DecoderSettings = {
    ...PLAIN,
    ...{ vocabSize: 3, layers: 3, embedDim: 48, heads: 3, kvHeads: 3, headDim: 16, hiddenDim: 192, contextLength: 11 },
    ...{ norm: "layer", activation: "gelu_tanh", gated: false, learnedPositions: true, normEpsilon: 1e-5 },
    ...{ queryKeyValueBias: true, outputBias: true, mlpBias: true },
  };
  /** Where each tensor goes; the packed projection is three slots. */
  const LAYER: Record<string, Slot[]> = {
    "ln_1.weight": ["attentionNormWeight"],
    "ln_1.bias": ["attentionNormBias"],
    "attn.c_attn.weight": ["queryWeight", "keyWeight", "valueWeight"],
    "attn.c_attn.bias": ["queryBias", "keyBias", "valueBias"],
    "attn.c_proj.weight": ["outputWeight"],
    "attn.c_proj.bias": ["outputBias"],
    "ln_2.weight": ["mlpNormWeight"],
    "ln_2.bias": ["mlpNormBias"],
    "mlp.c_fc.weight": ["upWeight"],
    "mlp.c_fc.bias": ["upBias"],
    "mlp.c_proj.weight": ["downWeight"],
    "mlp.c_proj.bias": ["downBias"],
  };

  function load(lb: Lookback): Decoder {
    const decoder = new Decoder(heapOf(lb, "test"), settings);
    const put = (name: string, slots: Slot[], layer = 0) => {
      const { shape } = model[name]!;
      const [rowCount, stride] = [shape[0]! / slots.length, shape[1] ?? 1];
      slots.forEach((slot, part) => {
        const from = part * rowCount * stride;
        const bytes = bytesOf(model[name]!);
        decoder.write({ slot, layer, firstRow: 0, rowCount, type: "F32", bytes, from, stride, transposed: false });
      });
    };
    put("transformer.wte.weight", ["tokenEmbedding"]);
    put("transformer.wpe.weight", ["positionEmbedding"]);
    put("transformer.ln_f.weight", ["finalNormWeight"]);
    put("transformer.ln_f.bias", ["finalNormBias"]);
    put("lm_head.weight", ["head"]);
    for (let layer = 0; layer < settings.layers; layer++)
      for (const [name, slots] of Object.entries(LAYER)) put(`transformer.h.${layer}.${name}`, slots, layer);
    expect(decoder.missing()).toEqual([]);
    return decoder;
  }

  describeVariants((lb) => {
    test("M4, R12: a trained GPT gives PyTorch's logits and attention weights", () => {
      const decoder = load(lb);
      const tokens = Int32Array.from(floatsOf("idx"));
      const session = decoder.session({ batch: 3, capacity: 11, chunk: 11 });
      const { logits, weights } = session.forward(tokens, { logits: "all", weights: { layers: [0], heads: "all" } });
      const expected = floatsOf("lm_head");
      const most = expected.reduce((size, value) => Math.max(size, Math.abs(value)), 0);
      holds(
        worst(logits!.data, expected, () => 5e-6 * most),
        "logits",
      );
      holds(
        worst(weights![0]!.tensor.data, floatsOf("attSm"), () => 2e-6),
        "weights",
      );
      session.dispose();
      decoder.dispose();
    });

    test("M4, R16: token by token it gives the same logits", () => {
      const decoder = load(lb);
      const tokens = Int32Array.from(floatsOf("idx"));
      const session = decoder.session({ batch: 3, capacity: 11, chunk: 1 });
      const expected = floatsOf("lm_head");
      for (let i = 0; i < 11; i++) {
        session.forward(Int32Array.from([0, 1, 2], (row) => tokens[row * 11 + i]!));
        const wanted = [0, 1, 2].flatMap((row) =>
          Array.from(expected.subarray((row * 11 + i) * 3, (row * 11 + i) * 3 + 3)),
        );
        holds(
          worst(session.logits().data, Float32Array.from(wanted), () => 1e-4),
          `logits of token ${i}`,
        );
      }
      session.dispose();
      decoder.dispose();
    });
  });
}

const stories = folder("models/stories260K");
if (!existsSync(stories)) test.skip("../shared/models/stories260K is not beside this checkout", () => {});
else {
  interface Golden {
    cases: { prompt: string; promptIds: number[]; ids: number[] }[];
    /** [query][layer][head][key ≤ query] */
    attention: { ids: number[]; att: number[][][][] };
  }
  const golden: Golden = JSON.parse(readFileSync(new URL("golden.json", stories), "utf8"));
  const file = readFileSync(new URL("stories260K.bin", stories));

  function load(lb: Lookback): Decoder {
    const header = Array.from({ length: 7 }, (_, n) => file.readInt32LE(4 * n));
    const [embedDim, hiddenDim, layers, heads, kvHeads, vocabSize, contextLength] = header as [
      ...[number, number, number, number, number, number, number],
    ];
    const headDim = embedDim / heads;
    const rotary = { dims: headDim, interleaved: true };
    const sizes = { vocabSize, layers, embedDim, heads, kvHeads, headDim, hiddenDim, contextLength };
    const decoder = new Decoder(heapOf(lb, "test"), { ...PLAIN, ...sizes, normEpsilon: 1e-5, tiedHead: true, rotary });
    let at = 28;
    const put = (slot: Slot, rowCount: number, stride: number, count = layers) => {
      for (let layer = 0; layer < count; layer++) {
        const bytes = file.subarray(at, at + rowCount * stride * 4);
        decoder.write({ slot, layer, firstRow: 0, rowCount, type: "F32", bytes, from: 0, stride, transposed: false });
        at += bytes.length;
      }
    };
    put("tokenEmbedding", vocabSize, embedDim, 1);
    put("attentionNormWeight", embedDim, 1);
    put("queryWeight", embedDim, embedDim);
    put("keyWeight", kvHeads * headDim, embedDim);
    put("valueWeight", kvHeads * headDim, embedDim);
    put("outputWeight", embedDim, embedDim);
    put("mlpNormWeight", embedDim, 1);
    put("gateWeight", hiddenDim, embedDim);
    put("downWeight", embedDim, hiddenDim);
    put("upWeight", hiddenDim, embedDim);
    put("finalNormWeight", embedDim, 1, 1);
    expect(decoder.missing()).toEqual([]);
    return decoder;
  }

  describeVariants((lb) => {
    test("M4: stories260K writes, greedily, what llama2.c wrote", () => {
      const decoder = load(lb);
      const session = decoder.session({ batch: 1, capacity: 256, chunk: 16 });
      const greedy = session.sampler({ temperature: 0 });
      for (const { promptIds, ids } of golden.cases) {
        session.reset();
        session.forward(Int32Array.from(promptIds));
        const found = [...promptIds, ...session.sample(greedy)];
        while (found.length < ids.length) found.push(...session.step(greedy));
        expect(found).toEqual(ids);
      }
      for (const owned of [greedy, session, decoder]) owned.dispose();
    });

    test("R12: its attention weights are llama2.c's", () => {
      const decoder = load(lb);
      const session = decoder.session({ batch: 1, capacity: 16, chunk: 16 });
      const { ids, att } = golden.attention;
      const { weights } = session.forward(Int32Array.from(ids), { weights: { layers: [0, 1, 2, 3, 4], heads: "all" } });
      att.forEach((layers, query) => {
        layers.forEach((heads, layer) => {
          heads.forEach((row, head) => {
            const { data } = weights![layer]!.tensor;
            const from = (head * ids.length + query) * ids.length;
            holds(
              worst(data.subarray(from, from + row.length), Float32Array.from(row), () => 3e-6),
              "weights",
            );
          });
        });
      });
      session.dispose();
      decoder.dispose();
    });
  });
}
