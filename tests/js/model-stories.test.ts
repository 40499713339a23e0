/** A real model, whole: its texts, its attention and its logits are those that llama2.c gives. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Lookback } from "lookback";
import { loadDecoder, type Model } from "lookback/model";
import { describeVariants } from "./support/instances.ts";
import { golden, STORIES_MISSING, storiesPresent, storiesSource } from "./support/stories.ts";

if (!storiesPresent) test.skip(STORIES_MISSING, () => {});
else describeVariants(stories);

function stories(lb: Lookback): void {
  const expected = golden();
  let model: Model;
  beforeAll(async () => {
    model = await loadDecoder(lb, storiesSource());
  });
  afterAll(() => model.dispose());

  test.each(expected.cases.map((one) => [one.prompt, one] as const))(
    "the greedy text after %p is exactly llama2.c's",
    async (prompt, { promptIds, ids, text }) => {
      expect(model.encode(prompt)).toEqual(promptIds);
      const found = [...promptIds];
      let told = prompt;
      for await (const step of model.generate(prompt, { maxTokens: ids.length - promptIds.length })) {
        found.push(step.id);
        told += step.text;
      }
      expect(found).toEqual(ids);
      expect(told).toBe(text);
      expect(model.decode(ids)).toBe(text);
    },
  );

  test("side by side they are what they are alone", async () => {
    const { cases } = expected;
    const most = Math.max(...cases.map(({ ids, promptIds }) => ids.length - promptIds.length));
    const found = cases.map(({ promptIds }) => [...promptIds]);
    for await (const { row, id } of model.generate(
      cases.map(({ prompt }) => prompt),
      { maxTokens: most },
    ))
      found[row]!.push(id);
    found.forEach((ids, row) => {
      expect(ids.slice(0, cases[row]!.ids.length)).toEqual(cases[row]!.ids);
    });
  });

  test("the attention maps are within 1e-4", () => {
    const { prompt, ids, att } = expected.attention;
    const attended = model.attend(prompt);
    expect(attended.ids).toEqual(ids);
    expect(attended.tokens).toEqual(["<s>", "Once", " upon", " a", " time"]);
    let compared = 0;
    att.forEach((layers, query) => {
      layers.forEach((heads, layer) => {
        heads.forEach((keys, head) => {
          const row = attended.weights[layer]![head]!.data.slice(query * ids.length, (query + 1) * ids.length);
          expect(row.subarray(keys.length)).toEqual(new Float32Array(ids.length - keys.length));
          for (const [key, weight] of keys.entries()) expect(Math.abs(row[key]! - weight)).toBeLessThan(1e-4);
          compared += keys.length;
        });
      });
    });
    expect(compared).toBe(15 * 5 * 8);
  });

  test("chosen layers and heads are those of all", () => {
    const { prompt } = expected.attention;
    const all = model.attend(prompt);
    const some = model.attend(prompt, { layers: [3, 1], heads: [7, 0] });
    expect([some.layers, some.heads]).toEqual([
      [1, 3],
      [7, 0],
    ]);
    for (const [i, layer] of some.layers.entries())
      for (const [j, head] of some.heads.entries()) expect(some.weights[i]![j]).toEqual(all.weights[layer]![head]);
  });

  test("each step's weights are the last row of the text's map", async () => {
    const prompt = "Lily and Ben";
    const ids = model.encode(prompt);
    for await (const { id, weights } of model.generate(prompt, {
      maxTokens: 6,
      weights: { layers: [0, 4], heads: [2] },
    })) {
      const { weights: maps } = model.attend(ids, { layers: [0, 4], heads: [2] });
      expect(weights!.tensor.dims).toEqual([2, 1, ids.length]);
      for (const layer of [0, 1]) {
        const looked = weights!.tensor.data.slice(layer * ids.length, (layer + 1) * ids.length);
        const row = maps[layer]![0]!.data.slice(-ids.length);
        for (const [key, weight] of row.entries()) expect(looked[key]).toBeCloseTo(weight, 5);
      }
      ids.push(id);
    }
  });

  test("R12: looking changes no text, whatever is drawn", async () => {
    const options = { maxTokens: 60, temperature: 1, topK: 50, seed: 4, stop: "\n\n" };
    const plain = await model.generate("Zoo", options).text();
    const looked = model.generate("Zoo", { ...options, weights: true, candidates: 5, entropy: true });
    expect(await looked.text()).toBe(plain);
  });

  test("the last logits are llama2.c's", () => {
    const { ids, lastLogits } = expected.attention;
    const { logits } = model.forward(ids);
    expect(logits.dims).toEqual([1, 512]);
    for (const [id, logit] of lastLogits.entries()) expect(Math.abs(logits.data[id]! - logit)).toBeLessThan(1e-3);
  });

  test("logits after every token, at once, in a batch of other lengths, or piece by piece with a cache, are the same", () => {
    const ids = expected.cases[1]!.ids;
    const whole = model.forward(ids, { logits: "all" }).logits;
    expect(whole.dims).toEqual([1, ids.length, 512]);
    const close = (found: Float32Array, wanted: Float32Array) => {
      expect(found.length).toBe(wanted.length);
      let worst = 0;
      for (let i = 0; i < found.length; i++) worst = Math.max(worst, Math.abs(found[i]! - wanted[i]!));
      expect(worst).toBeLessThan(2e-4);
    };
    const beside = model.forward([ids.slice(0, 50), ids], { logits: "all" }).logits;
    expect(beside.dims).toEqual([2, ids.length, 512]);
    close(beside.data.slice(0, 50 * 512), whole.data.slice(0, 50 * 512));
    expect(beside.data.slice(50 * 512, ids.length * 512).every((value) => value === 0)).toBe(true);
    close(beside.data.slice(ids.length * 512), whole.data);
    const cache = model.cache({ capacity: ids.length });
    for (const [from, to] of [
      [0, 1],
      [1, 170],
      [170, ids.length],
    ] as const)
      close(
        model.forward(ids.slice(from, to), { logits: "all", cache }).logits.data,
        whole.data.slice(from * 512, to * 512),
      );
    expect(cache.length).toBe(ids.length);
    cache.dispose();
  });

  test("R16: an int8 cache agrees with float32 on at least 95 % of the next tokens, logits within 0.25 rms", () => {
    for (const { ids } of expected.cases) {
      const exact = model.forward(ids, { logits: "all" }).logits.data;
      const cache = model.cache({ dtype: "int8", capacity: ids.length });
      let [agreed, squares] = [0, 0];
      for (const [at, id] of ids.entries()) {
        const row = model.forward([id], { cache }).logits.data;
        const wanted = exact.subarray(at * 512, (at + 1) * 512);
        if (row.indexOf(Math.max(...row)) === wanted.indexOf(Math.max(...wanted))) agreed++;
        for (let i = 0; i < 512; i++) squares += (row[i]! - wanted[i]!) ** 2;
      }
      cache.dispose();
      expect(agreed / ids.length).toBeGreaterThanOrEqual(0.95);
      expect(Math.sqrt(squares / (ids.length * 512))).toBeLessThanOrEqual(0.25);
    }
  });

  test("the lens after the last layer is the logits themselves", () => {
    const { ids } = expected.attention;
    const { logits, lens } = model.forward(ids, { lens: [0, 4] });
    expect(lens!.dims).toEqual([2, 1, 512]);
    expect(lens!.data.slice(512)).toEqual(logits.data);
    expect(lens!.data.slice(0, 512)).not.toEqual(logits.data);
  });

  test("inspect tells its sizes", () => {
    const info = model.inspect({ context: 256 });
    expect(info).toMatchObject({
      parameters: 260032,
      context: 256,
      config: { family: "llama2.c", layers: 5, kvHeads: 4 },
    });
    expect(info.tensors.reduce((sum, { dims, count }) => sum + count * dims.reduce((a, b) => a * b, 1), 0)).toBe(
      260032,
    );
    expect(info.memory.int8).toBeLessThan(info.memory.f32);
    expect(info.memory.weights).toBeGreaterThanOrEqual(4 * 260032);
  });
}
