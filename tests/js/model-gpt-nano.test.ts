/** M4: a trained GPT, written as transformers writes GPT-2, loads as one and gives PyTorch's logits and attention. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { loadDecoder } from "lookback/model";
import { describeVariants } from "./support/instances.ts";
import { asFile } from "./support/model-folders.ts";
import { type NamedTensor, safetensors } from "./support/safetensors.ts";

const folder = new URL("../../../shared/conformance/gpt-nano-sort/", import.meta.url);

if (!existsSync(folder)) test.skip("M4: ../shared/conformance/gpt-nano-sort is not beside this checkout", () => {});
else {
  type Arrays = Record<string, { shape: number[]; data: string }>;
  const read = (name: string): Arrays => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
  const floats = ({ data }: { data: string }) => new Float32Array(Uint8Array.from(Buffer.from(data, "base64")).buffer);
  const model = read("gpt-nano-sort-model.json");
  const partials = read("gpt-nano-sort-t0-partials.json");

  /** PyTorch's [outputs, inputs] as Conv1D's [inputs, outputs]. */
  const transposed = (values: Float32Array, [outputs, inputs]: number[]): NamedTensor => ({
    dims: [inputs!, outputs!],
    values: values.map((_, at) => values[(at % outputs!) * inputs! + Math.floor(at / outputs!)]!),
  });
  const tensors = Object.fromEntries(
    Object.entries(model)
      .filter(([name]) => /(weight|bias)$/.test(name) && !/\.attn\.bias$/.test(name))
      .map(([name, array]) => {
        const isConv = /c_(attn|proj|fc)\.weight$/.test(name);
        const values = floats(array);
        return [name, isConv ? transposed(values, array.shape) : { dims: array.shape, values }];
      }),
  );
  const letters = { type: "BPE", vocab: { A: 0, B: 1, C: 2 }, merges: [], unk_token: null };
  const files = () => [
    asFile("config.json", {
      ...{ model_type: "gpt2", vocab_size: 3, n_embd: 48, n_layer: 3, n_head: 3, n_positions: 11 },
      tie_word_embeddings: false,
    }),
    asFile("tokenizer.json", {
      ...{ version: "1.0", added_tokens: [], normalizer: null, pre_tokenizer: { type: "WhitespaceSplit" } },
      ...{ post_processor: null, decoder: null, model: letters },
    }),
    asFile("model.safetensors", safetensors(tensors)),
  ];

  describeVariants((lb) => {
    test("M4: logits and attention weights are PyTorch's", async () => {
      const loaded = await loadDecoder(lb, files());
      const ids = Array.from(floats(partials.idx!));
      const rows = [0, 1, 2].map((row) => ids.slice(11 * row, 11 * row + 11));
      const { logits, weights } = loaded.forward(rows, { logits: "all", weights: { layers: [0] } });
      loaded.dispose();
      const close = (found: Float32Array, expected: Float32Array, bound: number) => {
        expect(found.length).toBe(expected.length);
        for (const [i, value] of expected.entries()) expect(Math.abs(found[i]! - value)).toBeLessThan(bound);
      };
      close(logits.data, floats(partials.lm_head!), 1e-4);
      close(weights!.data, floats(partials.attSm!), 1e-5);
    });

    test("it sorts", async () => {
      const loaded = await loadDecoder(lb, files());
      const given = [2, 1, 0, 1, 0, 2];
      const sorted: number[] = [];
      for await (const { id } of loaded.generate(given, { maxTokens: 6 })) sorted.push(id);
      loaded.dispose();
      expect(sorted).toEqual([...given].sort());
    });
  });
}
