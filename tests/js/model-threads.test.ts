/** R15: the number of threads changes no token, no weight and no logit of a model. */
import { afterAll, expect, jest, test } from "@jest/globals";
import { createLookback } from "lookback";
import { type GenerateOptions, type GenerationStep, loadDecoder, type Model, type ModelSource } from "lookback/model";
import { describeVariants } from "./support/instances.ts";
import { filesOf, llamaShapes, randomTensors, VOCABULARY } from "./support/model-folders.ts";
import { STORIES_MISSING, storiesPresent, storiesSource } from "./support/stories.ts";

// Three threads on two processors that others use, too, wait for each other.
jest.setTimeout(60_000);

/** Wide enough for every thread to get rows of its own. */
const CONFIG = {
  ...{ model_type: "llama", vocab_size: VOCABULARY, hidden_size: 256, intermediate_size: 704, num_hidden_layers: 3 },
  ...{ num_attention_heads: 8, num_key_value_heads: 4, max_position_embeddings: 256, tie_word_embeddings: false },
};
const THREADS = [2, 3];
const PROMPTS = ["once upon a time ".repeat(9), "on the other hand"];

describeVariants((alone, variant) => {
  const instances = THREADS.map((threads) => createLookback({ variant, threads }));
  afterAll(async () => {
    for (const lb of instances) (await lb).dispose();
  });

  /** What `compute` makes of the model is the same with every number of threads. */
  async function same(source: () => ModelSource, compute: (model: Model) => unknown): Promise<void> {
    const model = await loadDecoder(alone, source());
    const expected = await compute(model);
    model.dispose();
    for (const [at, starting] of instances.entries()) {
      const lb = await starting;
      expect(lb.threads).toBe(THREADS[at]);
      const other = await loadDecoder(lb, source());
      expect(await compute(other)).toEqual(expected);
      other.dispose();
    }
  }

  const stepsOf = (options: GenerateOptions) => async (model: Model) => {
    const steps: GenerationStep[] = [];
    for await (const step of model.generate(PROMPTS, options)) steps.push(step);
    expect(steps.length).toBeGreaterThan(20);
    return steps;
  };
  const folder = () => filesOf({ config: CONFIG, tensors: randomTensors(llamaShapes(CONFIG, {}), 3) });

  test.each<[string, GenerateOptions]>([
    ["the most probable tokens", {}],
    ["drawn tokens", { temperature: 1.3, topK: 60, topP: 0.95, minP: 0.001, repetitionPenalty: 1.1, seed: 4 }],
    ["tokens over an int8 cache", { temperature: 1, seed: 5, cache: "int8" }],
  ])(
    "R15: %s, with their weights, candidates and entropies, are the same with 1, 2 and 3 threads",
    async (_what, options) => {
      await same(folder, stepsOf({ ...options, maxTokens: 20, weights: true, candidates: 9, entropy: true }));
    },
  );

  test("R15: so are logits, lens and maps", async () => {
    await same(folder, (model) => {
      const ids = PROMPTS.map((prompt) => model.encode(prompt));
      return model.forward(ids, { logits: "all", lens: "all", weights: true });
    });
  });

  if (!storiesPresent) test.skip(STORIES_MISSING, () => {});
  else
    test("R15: so is a trained model's story", async () => {
      await same(storiesSource, (model) =>
        model.generate("Once upon a time", { maxTokens: 200, temperature: 0.8, topK: 40, topP: 0.95, seed: 1 }).text(),
      );
    });
});
