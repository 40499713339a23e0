/** How texts are generated: options, ends, memory, signals. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { type GenerationStep, loadDecoder, type Model } from "lookback/model";
import { caught, expectError, rejected } from "./support/helpers.ts";
import { filesOf, gpt2Shapes, randomTensors, VOCABULARY } from "./support/model-folders.ts";

/** A small GPT-2 with random weights over bytes: what it says is noise, in every script. */
const CONFIG = { model_type: "gpt2", vocab_size: VOCABULARY, n_embd: 32, n_head: 4, n_layer: 2, n_positions: 96 };

let lb: Lookback;
let model: Model;
beforeAll(async () => {
  lb = await createLookback();
  model = await loadDecoder(lb, filesOf({ config: CONFIG, tensors: randomTensors(gpt2Shapes(CONFIG, ""), 5) }));
});
afterAll(() => lb.dispose());

async function all(steps: AsyncIterable<GenerationStep>): Promise<GenerationStep[]> {
  const list: GenerationStep[] = [];
  for await (const step of steps) list.push(step);
  return list;
}
const textOf = (steps: readonly GenerationStep[]): string => steps.map(({ text }) => text).join("");

describe("the text", () => {
  test.each([1, 2, 3, 4, 5, 6])(
    "of steps put together is the text of their ids, with incomplete bytes as U+FFFD (seed %p)",
    async (seed) => {
      const prompt = model.encode("once the ");
      const steps = await all(model.generate(prompt, { maxTokens: 60, temperature: 2, seed }));
      const ids = steps.map(({ id }) => id);
      expect(textOf(steps)).toBe(model.decode([...prompt, ...ids]).slice("once the ".length));
      expect(textOf(steps)).toContain("\uFFFD");
      expect(textOf(steps.slice(0, -1))).not.toMatch(/\uFFFD$/);
    },
  );

  test("ends before a stop string, wherever its pieces come from", async () => {
    const options = { maxTokens: 60, temperature: 1.5, seed: 9 };
    const free = await model.generate("hello", options).text();
    for (const [from, length] of [
      [5, 1],
      [3, 4],
      [10, 9],
    ] as const) {
      const stop = free.slice(from, from + length);
      const steps = await all(model.generate("hello", { ...options, stop: ["never in it: ☃☃", stop] }));
      expect(textOf(steps)).toBe(free.slice(0, free.indexOf(stop)));
      expect(steps.at(-1)!.finish).toBe("stop");
      expect(steps.slice(0, -1).every(({ finish }) => finish === undefined)).toBe(true);
    }
  });

  test("that looked like a stop string and was none comes out in the end", async () => {
    const options = { maxTokens: 12, temperature: 1.5, seed: 9 };
    const free = await model.generate("hello", options).text();
    const stop = `${free.slice(-3)}and more`;
    expect(await model.generate("hello", { ...options, stop }).text()).toBe(free);
  });
});

describe("it ends", () => {
  test("after maxTokens", async () => {
    const steps = await all(model.generate("hello", { maxTokens: 7 }));
    expect(steps).toHaveLength(7);
    expect(steps.at(-1)!.finish).toBe("length");
  });

  test("with the context: the last token is the one after the last position", async () => {
    const prompt = model.encode("hello");
    const run = model.generate(prompt, { maxTokens: Infinity, topK: 20, seed: 1 });
    const steps = await all(run);
    expect(steps.at(-1)!.finish).toBe("context");
    expect(prompt.length + steps.length).toBe(CONFIG.n_positions + 1);
  });

  test("with the end token, which has no text", async () => {
    for (let seed = 0; ; seed++) {
      expect(seed).toBeLessThan(200);
      const steps = await all(model.generate("hello", { temperature: 3, seed, maxTokens: 80 }));
      const end = steps.findIndex(({ id }) => id === VOCABULARY - 1);
      if (end < 0) continue;
      expect(steps).toHaveLength(end + 1);
      expect(steps[end]).toMatchObject({ finish: "end" });
      expect(textOf(steps)).not.toContain("<|end|>");
      break;
    }
  });
});

describe("R15: draws", () => {
  const options = { maxTokens: 30, temperature: 1.2, topK: 60, topP: 0.95, minP: 0.01, repetitionPenalty: 1.1 };

  test("of the same seed are the same, of another one others", async () => {
    const [a, b, c] = await Promise.all([1, 1, 2].map((seed) => model.generate("hello", { ...options, seed }).text()));
    expect(a).toBe(b);
    expect(a).not.toBe(c);
  });

  test("of a row in a batch are those that it has alone", async () => {
    const prompts = ["hello", "on the other hand, ", "x"];
    const seeds = [3, 4, 5];
    const together = await model.generate(prompts, { ...options, seed: seeds }).texts();
    const alone = await Promise.all(
      prompts.map((prompt, row) => model.generate(prompt, { ...options, seed: seeds[row]! }).text()),
    );
    expect(together).toEqual(alone);
  });

  test("are the same where weights are asked for, and after neighbours have ended", async () => {
    const seeds = [3, 4, 5];
    const alone = await Promise.all(seeds.map((seed) => all(model.generate("hello", { ...options, seed }))));
    expect(new Set(alone.map(({ length }) => length)).size).toBeGreaterThan(1);
    const prompts = seeds.map(() => "hello");
    for (const weights of [undefined, true] as const) {
      const together = await all(model.generate(prompts, { ...options, seed: seeds, ...(weights && { weights }) }));
      alone.forEach((steps, row) => {
        const found = together.filter((step) => step.row === row);
        expect(found.map(({ id, text, finish }) => [id, text, finish])).toEqual(
          steps.map(({ id, text, finish }) => [id, text, finish]),
        );
      });
    }
  });

  test("without a seed can be had again by the seed that stats tell", async () => {
    const run = model.generate("hello", { maxTokens: 20, temperature: 1 });
    const text = await run.text();
    expect(await model.generate("hello", { maxTokens: 20, temperature: 1, seed: run.stats.seed }).text()).toBe(text);
  });

  test("are among the candidates that are most probable, whose probabilities fall", async () => {
    for await (const { id, candidates, entropy } of model.generate("hello", {
      maxTokens: 10,
      topK: 3,
      seed: 2,
      candidates: 5,
      entropy: true,
    })) {
      expect(candidates).toHaveLength(5);
      expect(candidates!.slice(0, 3).map((one) => one.id)).toContain(id);
      const probabilities = candidates!.map(({ probability }) => probability);
      expect([...probabilities].sort((a, b) => b - a)).toEqual(probabilities);
      expect(entropy).toBeGreaterThan(0);
      expect(entropy).toBeLessThanOrEqual(Math.log(VOCABULARY));
    }
  });

  test("with topK 1 are the greedy ones, which need no seed", async () => {
    const greedy = await model.generate("hello", { maxTokens: 20 }).text();
    expect(await model.generate("hello", { maxTokens: 20, topK: 1, seed: 8 }).text()).toBe(greedy);
    expect(await model.generate("hello", { maxTokens: 20, temperature: 0, seed: 8 }).text()).toBe(greedy);
  });
});

describe("a cache goes on", () => {
  test("from one text to the next: the same as both in one", async () => {
    const cache = model.cache({ capacity: 90 });
    const first = model.encode("hello ");
    const steps = await all(model.generate(first, { maxTokens: 5, cache }));
    const said = [...first, ...steps.map(({ id }) => id)];
    expect(cache.length).toBe(said.length);
    const second = model.encode("and then ");
    const next = await all(model.generate(second, { maxTokens: 8, cache }));
    const whole = await all(model.generate([...said, ...second], { maxTokens: 8 }));
    expect(next.map(({ id }) => id)).toEqual(whole.map(({ id }) => id));
    cache.truncate(first.length);
    expect(cache.lengths).toEqual([first.length]);
    cache.reset();
    expect(cache.length).toBe(0);
    cache.dispose();
  });

  test("and ends where it is full", async () => {
    const cache = model.cache({ capacity: 20, dtype: "int8" });
    const steps = await all(model.generate("hello", { cache }));
    expect(steps.at(-1)!.finish).toBe("context");
    expect(cache.length).toBe(20);
    expectError(
      caught(() => model.generate("x", { cache })),
      "context-exceeded",
      "20 in the cache",
      "room for 20",
    );
    cache.dispose();
  });
});

describe("B6: a signal", () => {
  test("ends a generation between two tokens, and nothing is left behind", async () => {
    const before = lb.memory();
    const controller = new AbortController();
    const steps: GenerationStep[] = [];
    const reason = new Error("enough");
    await expect(
      (async () => {
        for await (const step of model.generate("hello", { maxTokens: 50, signal: controller.signal })) {
          steps.push(step);
          if (steps.length === 3) controller.abort(reason);
        }
      })(),
    ).rejects.toBe(reason);
    expect(steps).toHaveLength(3);
    expect(lb.memory()).toEqual({ ...before, reserved: expect.any(Number) });
  });

  test("that has come before ends it at once", async () => {
    const run = model.generate("hello", { signal: AbortSignal.abort() });
    await expect(run.text()).rejects.toMatchObject({ name: "AbortError" });
  });

  test("timers run while it generates", async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const longest = model.encode("x".repeat(40));
    const until = performance.now() + 200;
    while (performance.now() < until) await model.generate(longest, { maxTokens: 40 }).text();
    clearInterval(timer);
    expect(turns).toBeGreaterThan(3);
  });
});

describe("memory", () => {
  test("a loop that is left early gives it back", async () => {
    const before = lb.memory();
    for await (const _ of model.generate("hello")) break;
    expect(lb.memory().bytes).toBe(before.bytes);
    expect(lb.memory().allocations).toBe(before.allocations);
  });

  test("of caches is counted, and returned", () => {
    const before = lb.memory();
    const cache = model.cache({ batch: 2, capacity: 50 });
    expect(lb.memory().allocations).toBe(before.allocations + 1);
    expect(lb.memory().bytes).toBeGreaterThan(before.bytes);
    cache.dispose();
    cache.dispose();
    expect(cache.disposed).toBe(true);
    expect(lb.memory().bytes).toBe(before.bytes);
    expectError(
      caught(() => model.forward([[1], [2]], { cache })),
      "disposed",
      "cache",
    );
  });

  test("B3: a model that was disposed of refuses everything", async () => {
    const other = await loadDecoder(lb, filesOf({ config: CONFIG, tensors: randomTensors(gpt2Shapes(CONFIG, ""), 6) }));
    const run = other.generate("hello");
    other.dispose();
    other.dispose();
    expect(other.disposed).toBe(true);
    expectError(
      caught(() => other.generate("hello")),
      "disposed",
    );
    expectError(
      caught(() => other.forward([1])),
      "disposed",
    );
    expectError(
      caught(() => other.attend("hello")),
      "disposed",
    );
    expectError(
      caught(() => other.cache()),
      "disposed",
    );
    for (const use of [
      () => other.encode("x"),
      () => other.decode([1]),
      () => other.tokenize("x"),
      () => other.inspect(),
    ])
      expectError(caught(use), "disposed", "The model");
    expectError(await rejected(run.text()), "disposed", "The model");
  });
});

describe("stats", () => {
  test("count tokens and tell their speed", async () => {
    const run = model.generate(["hello", "on"], { maxTokens: 10 });
    await run.texts();
    expect(run.stats).toMatchObject({
      newTokens: 20,
      promptTokens: model.encode("hello").length + model.encode("on").length,
    });
    expect(run.stats.tokensPerSecond).toBeCloseTo(20 / run.stats.seconds, 6);
  });
});

describe("B4: refusals", () => {
  // biome-ignore lint/suspicious/noExplicitAny: the wrong types are the point
  const loose = (): any => model;
  const refusals: [string, string, string[], () => unknown][] = [
    [
      "an option that does not exist",
      "unknown-option",
      ["'maxTokens'"],
      () => loose().generate("x", { maxNewTokens: 3 }),
    ],
    ["top_k", "unknown-option", ["'topK'"], () => loose().generate("x", { top_k: 3 })],
    ["maxTokens 0", "bad-option", ["maxTokens", "0"], () => model.generate("x", { maxTokens: 0 })],
    ["a negative temperature", "bad-option", ["temperature"], () => model.generate("x", { temperature: -1 })],
    [
      "a temperature that is no float32",
      "bad-option",
      ["float32", "1e+39"],
      () => model.generate("x", { temperature: 1e39 }),
    ],
    ["a topP that is 0 as float32", "bad-option", ["topP", "1e-60"], () => model.generate("x", { topP: 1e-60 })],
    ["a penalty of 0", "bad-option", ["repetitionPenalty", "0"], () => model.generate("x", { repetitionPenalty: 0 })],
    ["topP 0", "bad-option", ["topP", "0"], () => model.generate("x", { topP: 0 })],
    ["minP 2", "bad-option", ["minP", "2"], () => model.generate("x", { minP: 2 })],
    ["an empty stop string", "bad-option", ["stop"], () => model.generate("x", { stop: [""] })],
    ["two seeds for one prompt", "bad-option", ["2 seeds for 1"], () => model.generate("x", { seed: [1, 2] })],
    [
      "more candidates than tokens",
      "bad-option",
      ["candidates", "288"],
      () => model.generate("x", { candidates: 999 }),
    ],
    ["an empty prompt", "bad-option", ["empty"], () => model.generate("")],
    ["a prompt that is a number", "bad-option", ["prompt 1", "text or a list"], () => loose().generate(["x", 5])],
    ["no prompt", "bad-option", ["prompt"], () => loose().generate()],
    ["a prompt that is too long", "context-exceeded", ["97", "96"], () => model.generate(new Array(97).fill(1))],
    ["a token that does not exist", "token-out-of-range", ["287", "[1] is 288"], () => model.generate([1, 288])],
    ["a layer that does not exist", "bad-weights-request", ["0 to 1", "[2]"], () => model.attend("x", { layers: [2] })],
    ["a head twice", "bad-weights-request", ["heads", "[1, 1]"], () => model.attend("x", { heads: [1, 1] })],
    ["no heads", "bad-weights-request", ["heads", "[]"], () => model.attend("x", { heads: [] })],
    [
      "weights that are a word",
      "bad-weights-request",
      ["weights"],
      () => loose().generate("x", { weights: "softmax" }),
    ],
    ["a cache of another kind", "bad-option", ["cache"], () => loose().generate("x", { cache: "f16" })],
    ["a signal that is none", "bad-option", ["signal", "AbortSignal"], () => loose().generate("x", { signal: {} })],
    ["ids that are a word", "bad-option", ["ids"], () => loose().decode("x")],
    ["a context beyond the model's", "bad-option", ["96", "97"], () => model.inspect({ context: 97 })],
    ["forward without tokens", "bad-option", ["no tokens"], () => model.forward([])],
  ];

  test.each(refusals)("%s → %s", (_what, code, shown, action) => {
    const before = lb.memory();
    const error = caught(action);
    expect(error.code).toBe(code);
    for (const part of shown) expect(error.message).toContain(part);
    expect(lb.memory().allocations).toBe(before.allocations);
  });

  test("a cache of another batch, or of another model", async () => {
    const cache = model.cache({ batch: 2 });
    expectError(
      caught(() => model.generate("x", { cache })),
      "cache-mismatch",
      "2",
      "1",
    );
    const other = await loadDecoder(lb, filesOf({ config: CONFIG, tensors: randomTensors(gpt2Shapes(CONFIG, ""), 6) }));
    expectError(
      caught(() => other.generate(["x", "y"], { cache })),
      "other-instance",
    );
    other.dispose();
    cache.dispose();
  });
});
