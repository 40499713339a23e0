/** One cache and several users of it: what fails or is given up leaves it as it was, and texts do not run into each other. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { loadDecoder, type Model, type ModelCache } from "lookback/model";
import { caught, expectError, rejected } from "./support/helpers.ts";
import { filesOf, gpt2Shapes, randomTensors, VOCABULARY } from "./support/model-folders.ts";

/** Longer than two pieces in which prompts are read. */
const CONFIG = { model_type: "gpt2", vocab_size: VOCABULARY, n_embd: 32, n_head: 4, n_layer: 2, n_positions: 400 };
const load = () => loadDecoder(lb, filesOf({ config: CONFIG, tensors: randomTensors(gpt2Shapes(CONFIG, ""), 5) }));

let lb: Lookback;
let model: Model;
beforeAll(async () => {
  lb = await createLookback();
  model = await load();
});
afterAll(() => lb.dispose());

const idsOf = (length: number, seed = 1): number[] => Array.from({ length }, (_, i) => (i * 37 + seed * 11) % 250);

/** A cache with rows of different lengths, and what it says of two more tokens: the same as long as it holds the same. */
function filled(capacity = 380): { cache: ModelCache; says: () => Float32Array } {
  const cache = model.cache({ batch: 2, capacity });
  model.forward([idsOf(20), idsOf(7, 2)], { cache });
  const says = () => {
    const lengths = cache.lengths;
    const { logits } = model.forward([[5], [6]], { cache });
    expect(cache.lengths).toEqual(lengths.map((n) => n + 1));
    return logits.data;
  };
  return { cache, says };
}

/** After `disturb` the cache holds what it held before. */
async function expectUnchanged(disturb: (cache: ModelCache) => unknown, capacity?: number): Promise<void> {
  const [one, other] = [filled(capacity), filled(capacity)];
  await disturb(one.cache);
  expect(one.cache.lengths).toEqual([20, 7]);
  expect(one.says()).toEqual(other.says());
  one.cache.dispose();
  other.cache.dispose();
}

test("R16, B4: forward() of more than fits, whose first pieces would, changes nothing", () =>
  expectUnchanged((cache) => {
    const error = caught(() => model.forward([idsOf(200), idsOf(150)], { cache }));
    expectError(error, "cache-full", "capacity of 160");
  }, 160));

test("B6: a generation that is given up while it reads its prompts changes nothing", () =>
  expectUnchanged(async (cache) => {
    const reason = new Error("enough");
    let asked = 0;
    // Of three pieces the first two are read.
    const signal = Object.defineProperty(new AbortController().signal, "throwIfAborted", {
      value: () => {
        if (++asked === 3) throw reason;
      },
    });
    const run = model.generate([idsOf(300), idsOf(290)], { cache, signal });
    await expect(run.text()).rejects.toBe(reason);
    expect(asked).toBe(3);
  }));

test("B6: so does one whose signal had come before", () =>
  expectUnchanged(async (cache) => {
    const run = model.generate(["hello", "x"], { cache, signal: AbortSignal.abort() });
    await expect(run.text()).rejects.toMatchObject({ name: "AbortError" });
  }));

test("a generation that is given up later leaves what was said, each token once", async () => {
  const cache = model.cache();
  const ids = idsOf(9);
  for await (const { id } of model.generate(ids, { cache, maxTokens: 50 })) {
    ids.push(id);
    if (ids.length === 14) break;
  }
  expect(cache.lengths).toEqual([14]);
  const found = model.forward([3], { cache }).logits.data;
  const wanted = model.forward([...ids, 3]).logits.data;
  for (const [i, value] of found.entries()) expect(Math.abs(value - wanted[i]!)).toBeLessThan(1e-4);
  cache.dispose();
});

test("while a generation goes on, every other use of its cache is refused; afterwards none is", async () => {
  const cache = model.cache();
  const alone = await model.generate("hello", { maxTokens: 12 }).text();
  const second = model.generate("on the other hand", { cache });
  let text = "";
  for await (const step of model.generate("hello", { cache, maxTokens: 12 })) {
    text += step.text;
    const uses = [
      () => model.forward([1], { cache }),
      () => model.generate("x", { cache }),
      () => cache.truncate(1),
      () => cache.reset(),
    ];
    for (const use of uses) expectError(caught(use), "cache-busy");
    if (text === step.text) expectError(await rejected(second.text()), "cache-busy");
  }
  expect(text).toBe(alone);
  cache.reset();
  expect(await model.generate("hello", { cache, maxTokens: 12 }).text()).toBe(alone);
  cache.dispose();
});

test("a generation refuses a cache that another one has used since it was asked for", async () => {
  const cache = model.cache();
  const [first, second] = ["hello", "x"].map((prompt) => model.generate(prompt, { cache, maxTokens: 3 }));
  await first!.text();
  const { length } = cache;
  expectError(await rejected(second!.text()), "cache-mismatch", "[0]", `[${length}]`);
  expect(cache.length).toBe(length);
  cache.dispose();
});

test("two generations at once on one model say what each says alone", async () => {
  const options = { maxTokens: 40, temperature: 1, topK: 40, seed: 3 };
  const prompts = ["hello", "on the other hand, "];
  const alone: string[] = [];
  for (const prompt of prompts) alone.push(await model.generate(prompt, options).text());
  expect(await Promise.all(prompts.map((prompt) => model.generate(prompt, options).text()))).toEqual(alone);
});

test.each(["model", "cache"] as const)("B3: a %s may be disposed of within the loop", async (what) => {
  const before = lb.memory();
  const other = await load();
  const cache = other.cache();
  const owner = { model: other, cache }[what];
  for await (const _ of other.generate("hello", { cache })) {
    owner.dispose();
    break; // no error
  }
  const again = { model: await load(), cache: undefined }.model;
  const own = again.cache();
  const going = async () => {
    for await (const _ of again.generate("hello", { cache: own })) (what === "model" ? again : own).dispose();
  };
  expectError(await rejected(going()), "disposed", `The ${what}`);
  for (const one of [other, cache, again, own]) one.dispose();
  expect(lb.memory()).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
});
