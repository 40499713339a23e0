/** Drawing tokens: filters in their order, seeds, candidates; and what sessions refuse. */
import { expect, test } from "@jest/globals";
import type { Lookback } from "lookback";
import type { Decoder } from "../../dist/model/decoder.js";
import type { SamplerConfig } from "../../dist/model/sampler.js";
import { PLAIN } from "../../dist/model/settings.js";
import { FAMILIES, makeDecoder, randomWeights } from "./support/decoders.ts";
import { caught, expectError } from "./support/helpers.ts";
import { describeVariants } from "./support/instances.ts";

/** A decoder whose logits are the given ones after every token: all of it is 0 but for the final norm's bias and the head. */
function fixed(lb: Lookback, logits: readonly number[]): Decoder {
  const vocabSize = logits.length;
  const sizes = {
    vocabSize,
    layers: 1,
    embedDim: 4,
    heads: 1,
    kvHeads: 1,
    headDim: 4,
    hiddenDim: 4,
    contextLength: 4096,
  };
  const settings = { ...PLAIN, ...sizes, norm: "layer" as const };
  const weights = randomWeights(settings, 1);
  for (const values of weights.values()) values.fill(0);
  weights.get("finalNormBias")!.set([1, 0, 0, 0]);
  logits.forEach((logit, id) => {
    weights.get("head")![id * 4] = logit;
  });
  return makeDecoder(lb, settings, weights);
}

/** How often each token is drawn. */
function draw(lb: Lookback, logits: readonly number[], config: SamplerConfig, times = 3000, seed = 1): number[] {
  const decoder = fixed(lb, logits);
  const session = decoder.session({ batch: 1, capacity: 1, chunk: 1 });
  session.forward(Int32Array.of(0));
  const sampler = session.sampler(config);
  sampler.begin(0, seed);
  const counts = logits.map(() => 0);
  for (let n = 0; n < times; n++) counts[session.sample(sampler)[0]!]!++;
  for (const owned of [sampler, session, decoder]) owned.dispose();
  return counts.map((count) => count / times);
}

/** Shares within four standard deviations of their probabilities; a probability of 0 is never drawn. */
function drawn(shares: readonly number[], probabilities: readonly number[], times = 3000): void {
  shares.forEach((share, id) => {
    const p = probabilities[id]!;
    expect(Math.abs(share - p)).toBeLessThanOrEqual(p === 0 ? 0 : 4 * Math.sqrt((p * (1 - p)) / times) + 1e-9);
  });
}
const softmax = (logits: readonly number[]): number[] => {
  const exponents = logits.map((logit) => Math.exp(logit));
  const sum = exponents.reduce((total, e) => total + e, 0);
  return exponents.map((e) => e / sum);
};
const share = (weights: readonly number[]): number[] => {
  const sum = weights.reduce((total, w) => total + w, 0);
  return weights.map((w) => w / sum);
};

describeVariants((lb) => {
  // Probabilities 0.5, 0.25, 0.15, 0.1.
  const P = [0.1, 0.5, 0.15, 0.25];
  const logits = P.map(Math.log);

  test("tokens are drawn by their probabilities, and by the temperature", () => {
    drawn(draw(lb, logits, {}), P);
    drawn(draw(lb, logits, { temperature: 0.5 }), softmax(logits.map((l) => l / 0.5)));
    drawn(draw(lb, logits, { temperature: 2 }), softmax(logits.map((l) => l / 2)));
  });

  test("temperature 0 takes the largest logit, the first of equals", () => {
    expect(draw(lb, [1, 3, 3, 2], { temperature: 0 }, 10)).toEqual([0, 1, 0, 0]);
  });

  test("top-k leaves the k most probable, the lower id of equals", () => {
    drawn(draw(lb, logits, { topK: 2 }), share([0, 0.5, 0, 0.25]));
    drawn(draw(lb, [0, 0, 0, 0], { topK: 3 }), share([1, 1, 1, 0]));
    drawn(draw(lb, logits, { topK: 99 }), P);
  });

  test("top-p leaves the fewest that reach p, and always one", () => {
    drawn(draw(lb, logits, { topP: 0.7 }), share([0, 0.5, 0, 0.25]));
    drawn(draw(lb, logits, { topP: 0.8 }), share([0, 0.5, 0.15, 0.25]));
    drawn(draw(lb, logits, { topP: 0.01 }), [0, 1, 0, 0]);
  });

  test("top-p counts of what top-k has left", () => {
    // Of the three, 0.5 is 0.56 and with 0.25 it is 0.83.
    drawn(draw(lb, logits, { topK: 3, topP: 0.8 }), share([0, 0.5, 0, 0.25]));
  });

  test("min-p leaves those near the most probable, after the temperature", () => {
    drawn(draw(lb, logits, { minP: 0.25 }), share([0, 0.5, 0.15, 0.25]));
    drawn(draw(lb, logits, { minP: 0.25, temperature: 0.5 }), share([0, 0.25, 0, 0.0625]));
    drawn(draw(lb, logits, { minP: 0.4, topK: 4, topP: 0.99 }), share([0, 0.5, 0, 0.25]));
  });

  test("the repetition penalty divides positive logits and multiplies negative ones, of tokens seen", () => {
    const decoder = fixed(lb, [2, 3, -1, -2.5]);
    const session = decoder.session({ batch: 1, capacity: 1, chunk: 1 });
    session.forward(Int32Array.of(0));
    const sampler = session.sampler({ temperature: 0, repetitionPenalty: 2, candidates: 4 });
    sampler.begin(0, 1);
    sampler.observe(0, Int32Array.of(2));
    expect(session.sample(sampler)).toEqual([1]);
    expect(sampler.report(0).candidates.map(({ id }) => id)).toEqual([1, 0, 2, 3]); // −1 counts as −2
    expect(session.sample(sampler)).toEqual([0]); // 3 counts as 1.5
    sampler.begin(0, 1);
    expect(session.sample(sampler)).toEqual([1]);
    for (const owned of [sampler, session, decoder]) owned.dispose();
  });

  test("candidates and entropy are those of the distribution before it is cut", () => {
    const decoder = fixed(lb, logits);
    const session = decoder.session({ batch: 1, capacity: 1, chunk: 1 });
    session.forward(Int32Array.of(0));
    for (const temperature of [1, 0]) {
      const sampler = session.sampler({ temperature, topK: 1, candidates: 6 });
      expect(session.sample(sampler)).toEqual([1]);
      const { candidates, entropy } = sampler.report(0);
      expect(candidates.map(({ id }) => id)).toEqual([1, 3, 2, 0]);
      for (const { id, probability } of candidates) expect(probability).toBeCloseTo(P[id]!, 6);
      expect(entropy).toBeCloseTo(-P.reduce((sum, p) => sum + p * Math.log(p), 0), 6);
      sampler.dispose();
    }
    session.dispose();
    decoder.dispose();
  });

  test("R15: equal seeds give equal tokens, other seeds others", () => {
    const wide = Array.from({ length: 50 }, (_, n) => Math.sin(n));
    const run = (seed: number) => draw(lb, wide, { topP: 0.9 }, 50, seed).join();
    expect(run(7)).toBe(run(7));
    for (const other of [8, -7, 7 + 2 ** 32, Number.MAX_SAFE_INTEGER]) expect(run(other)).not.toBe(run(7));
  });

  test("R15: a row draws in a batch what it draws alone", () => {
    const settings = FAMILIES.Llama!;
    const decoder = makeDecoder(lb, settings, randomWeights(settings, 2));
    const write = (batch: number, seeds: number[]): number[][] => {
      const session = decoder.session({ batch, capacity: 40, chunk: 4 });
      const sampler = session.sampler({ topK: 20, repetitionPenalty: 1.1 });
      seeds.forEach((seed, row) => {
        sampler.begin(row, seed);
      });
      session.forward(Int32Array.from(seeds.flatMap((seed) => [1, 2, 3, seed])));
      const steps = [session.sample(sampler)];
      while (steps.length < 30) steps.push(session.step(sampler));
      sampler.dispose();
      session.dispose();
      return seeds.map((_, row) => steps.map((step) => step[row]!));
    };
    const together = write(3, [4, 5, 6]);
    [4, 5, 6].forEach((seed, row) => {
      expect(write(1, [seed])[0]).toEqual(together[row]);
    });
    decoder.dispose();
  });

  test("B4: what is refused changes nothing, and says why", () => {
    const settings = { ...FAMILIES.Llama!, contextLength: 6 };
    const decoder = makeDecoder(lb, settings, randomWeights(settings, 2));
    const session = decoder.session({ batch: 1, capacity: 5, chunk: 8 });
    session.forward(Int32Array.of(1, 2));
    const [before, logits] = [session.lengths, session.logits().data];
    const refused = (tokens: number[], code: Parameters<typeof expectError>[1], ...shown: string[]) =>
      expectError(
        caught(() => session.forward(Int32Array.from(tokens))),
        code,
        ...shown,
      );
    refused([3, 61], "token-out-of-range", "0 to 60", "61");
    refused([-1], "token-out-of-range", "-1");
    refused([1, 2, 3, 4, 5], "context-exceeded", "6", "[2]", "5 more");
    refused([1, 2, 3, 4], "cache-full", "5", "[2]", "4 more");
    expectError(
      caught(() => session.sampler({ topP: 0 })),
      "bad-option",
      "sampler",
    );
    expectError(
      caught(() => decoder.session({ batch: 0, capacity: 1, chunk: 1 })),
      "bad-option",
      "session",
    );
    expect(session.lengths).toEqual(before);
    expect(session.logits().data).toEqual(logits);
    session.dispose();
    decoder.dispose();
    expectError(
      caught(() => session.forward(Int32Array.of(1))),
      "disposed",
    );
  });
});
