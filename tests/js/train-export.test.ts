/** What a trainer exports is the model that it has: loadDecoder gives the same logits, and config.json says what transformers expects. */
import { describe, expect, jest, test } from "@jest/globals";
import { createLookback, type NewTrainerConfig } from "lookback";
import { loadDecoder } from "lookback/model";
import { MemoryReader } from "../../dist/model/bytes.js";
import { readHeader } from "../../dist/model/safetensors.js";
import { sentences, tinyRun } from "./support/corpora.ts";
import { gpt2Shapes, type LlamaLike, llamaShapes } from "./support/model-folders.ts";

jest.setTimeout(120_000); // a model learns in it, on whatever machine

const FLAVOURS: Record<string, Partial<NewTrainerConfig>> = {
  "GPT-2, characters": {},
  "GPT-2, its own head, documents": { model: { tiedHead: false }, text: sentences(200).trim().split("\n") },
  "Llama, a BPE, grouped queries": {
    model: { family: "llama", heads: 4, kvHeads: 2, tiedHead: false, hiddenDim: 40 },
    tokenizer: { bpe: 280 },
  },
};

const read = async (files: readonly File[], name: string) =>
  new Uint8Array(await files.find((file) => file.name === name)!.arrayBuffer());
const json = async (files: readonly File[], name: string) =>
  JSON.parse(new TextDecoder().decode(await read(files, name)));

describe.each(Object.entries(FLAVOURS))("%s", (_name, flavour) => {
  test("f32 gives the same text, attention and bits of logits; f16 those of the rounded weights", async () => {
    const lb = await createLookback();
    const trainer = await lb.trainer(tinyRun({ ...flavour, steps: 15 }));
    for await (const _ of trainer.run());
    const exact = await loadDecoder(lb, await trainer.export({ dtype: "f32" }));
    const rounded = await loadDecoder(lb, await trainer.export());
    const prompt = "the cat sees";
    const options = { maxTokens: 15, temperature: 0.9, seed: 4, candidates: 3 };
    const steps = async (model: Pick<typeof exact, "generate">) => {
      const list = [];
      for await (const step of model.generate(prompt, options)) list.push(step);
      return list;
    };
    expect(await steps(exact)).toEqual(await steps(trainer));
    expect(exact.attend(prompt)).toEqual(trainer.attend(prompt));
    const ids = exact.encode(prompt);
    const [a, b] = [exact.forward(ids).logits.data, rounded.forward(ids).logits.data];
    const size = Math.max(...a.map(Math.abs));
    expect(Math.max(...a.map((value, at) => Math.abs(value - b[at]!)))).toBeLessThan(5e-3 * size);
    expect(exact.config).toEqual(trainer.model);
    expect(exact.inspect().parameters).toBe(trainer.parameters);
    for (const owner of [exact, rounded, trainer, lb]) owner.dispose();
  });

  test("the folder holds what Hugging Face's transformers reads", async () => {
    const lb = await createLookback();
    const trainer = await lb.trainer(tinyRun(flavour));
    const files = await trainer.export();
    expect(files.map(({ name }) => name)).toEqual([
      ...["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"],
    ]);
    const config = await json(files, "config.json");
    const entries = await readHeader(new MemoryReader("x", await read(files, "model.safetensors"), undefined));
    const found = Object.fromEntries(entries.map(({ name, dims }) => [name, dims]));
    const { vocab_size: vocabSize, tie_word_embeddings: tied } = config;
    const like =
      config.model_type === "gpt2"
        ? gpt2Shapes(config, "transformer.")
        : llamaShapes(config as LlamaLike, { tied: true });
    const head = tied ? {} : { "lm_head.weight": [vocabSize, 32] };
    if (config.model_type === "llama") Object.assign(like, { "model.embed_tokens.weight": [vocabSize, 32] });
    expect(found).toEqual({ ...like, ...head });
    expect(new Set(entries.map(({ dtype }) => dtype))).toEqual(new Set(["F16"]));
    const tokenizer = await json(files, "tokenizer.json");
    const end = tokenizer.added_tokens[0]?.id ?? null;
    expect(config).toMatchObject({ bos_token_id: null, eos_token_id: end, torch_dtype: "float16" });
    expect(await json(files, "generation_config.json")).toMatchObject({ eos_token_id: end });
    expect(await json(files, "tokenizer_config.json")).toMatchObject({ model_max_length: 32 });
    expect(config.architectures).toEqual([config.model_type === "gpt2" ? "GPT2LMHeadModel" : "LlamaForCausalLM"]);
    trainer.dispose();
    lb.dispose();
  });
});

test("evaluate gives the loss that the logits of the exported model give, window by window", async () => {
  const lb = await createLookback();
  const trainer = await lb.trainer(tinyRun({ steps: 30, tokenizer: { bpe: 300 } }));
  for await (const _ of trainer.run());
  const model = await loadDecoder(lb, await trainer.export({ dtype: "f32" }));
  const text = sentences(5, 8);
  const ids = model.encode(text);
  /** −ln p of the token that follows `before`. */
  const loss = (before: readonly number[], target: number) => {
    const logits = Array.from(model.forward(before).logits.data);
    const most = Math.max(...logits);
    return most + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - most), 0)) - logits[target]!;
  };
  for (const stride of [32, 5]) {
    let sum = 0;
    for (let at = 1; at < ids.length; at++) {
      const windowsBefore = Math.max(0, Math.ceil((at - 32) / stride));
      sum += loss(ids.slice(windowsBefore * stride, at), ids[at]!);
    }
    const found = await trainer.evaluate({ on: { text }, stride });
    expect(found.tokens).toBe(ids.length - 1);
    expect(Math.abs(found.loss - sum / (ids.length - 1))).toBeLessThan(1e-5);
    expect(found.bitsPerCharacter).toBeCloseTo(((found.loss / Math.LN2) * ids.length) / text.length, 10);
  }
  for (const owner of [model, trainer, lb]) owner.dispose();
});
