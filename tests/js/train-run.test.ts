/** lb.trainer(): a model learns, the same bits on any number of threads and across an interruption. */
import { afterAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Lookback, type NewTrainerConfig, type Trainer, type TrainingStep } from "lookback";
import { noise, sentences, tinyRun } from "./support/corpora.ts";
import { expectAlive, expectError, rejected } from "./support/helpers.js";
import { describeVariants } from "./support/instances.js";

jest.setTimeout(120_000); // a model learns in it, on whatever machine

async function stepsOf(trainer: Trainer, count = Number.POSITIVE_INFINITY): Promise<TrainingStep[]> {
  const steps: TrainingStep[] = [];
  for await (const step of trainer.run()) {
    steps.push(step);
    if (steps.length === count) break;
  }
  return steps;
}

/** Runs `use` with a trainer, and disposes of it. */
async function withTrainer<T>(
  lb: Lookback,
  config: Parameters<Lookback["trainer"]>[0],
  use: (trainer: Trainer) => Promise<T>,
): Promise<T> {
  const trainer = await lb.trainer(config);
  try {
    return await use(trainer);
  } finally {
    trainer.dispose();
  }
}

/** Everything but the time that it took. */
const bits = (steps: readonly TrainingStep[]) => steps.map(({ tokensPerSecond: _, ...rest }) => rest);

const FLAVOURS: Record<string, Partial<NewTrainerConfig>> = {
  "GPT-2": { dropout: 0.1 },
  Llama: { model: { family: "llama", kvHeads: 1, tiedHead: false }, tokenizer: { bpe: 270 }, accumulate: 2 },
};

describeVariants((lb) => {
  describe.each(Object.entries(FLAVOURS))("%s", (_name, flavour) => {
    test("60 steps lower the loss, of what it learns from and of what it has not seen", async () => {
      const config = tinyRun({ ...flavour, steps: 60, evaluateEvery: 30 });
      await withTrainer(lb, config, async (trainer) => {
        const before = await trainer.evaluate();
        const steps = await stepsOf(trainer);
        expect(steps.map(({ step }) => step)).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
        // Untrained, every token is about as probable as any other.
        expect(Math.abs(steps[0]!.loss - Math.log(trainer.model.vocabSize))).toBeLessThan(0.2);
        expect(steps[59]!.loss).toBeLessThan(0.75 * steps[0]!.loss);
        expect(steps[59]!.validation!.loss).toBeLessThan(0.75 * before.loss);
        expect(steps.filter(({ validation }) => validation).map(({ step }) => step)).toEqual([30, 60]);
        for (const { gradientNorm, learningRate } of steps) {
          expect(gradientNorm).toBeGreaterThan(0);
          expect(learningRate).toBeLessThanOrEqual(3e-3);
        }
      });
    });

    test("R15: 20 steps are 10 steps, a checkpoint, and 10 more: the same bits", async () => {
      const config = tinyRun({ ...flavour, steps: 20, evaluateEvery: 5, sampleEvery: 10, sampleTokens: 12 });
      const whole = await withTrainer(lb, config, async (trainer) => ({
        steps: bits(await stepsOf(trainer)),
        saved: await trainer.save(),
      }));
      const half = await withTrainer(lb, config, async (trainer) => ({
        steps: bits(await stepsOf(trainer, 10)),
        saved: await trainer.save(),
      }));
      const rest = await withTrainer(lb, { checkpoint: half.saved, text: config.text }, async (trainer) => {
        expect([trainer.step, trainer.config.steps]).toEqual([10, 20]);
        return { steps: bits(await stepsOf(trainer)), saved: await trainer.save() };
      });
      expect([...half.steps, ...rest.steps]).toEqual(whole.steps);
      expect(Buffer.compare(rest.saved, whole.saved)).toBe(0);
    });
  });

  test("an aborted run has lost no finished step, and another run goes on to the same bits", async () => {
    const config = tinyRun({ accumulate: 3, steps: 8 });
    const whole = await withTrainer(lb, config, async (trainer) => bits(await stepsOf(trainer)));
    await withTrainer(lb, config, async (trainer) => {
      const controller = new AbortController();
      let calls = 0;
      const onProgress = ({ step, steps, fraction }: { step: number; steps: number; fraction: number }) => {
        calls++;
        expect([step, steps]).toEqual([Math.ceil(calls / 3), 8]);
        expect(fraction).toBeCloseTo(calls / 24, 12);
        if (calls === 14) controller.abort(); // two of three micro-batches of the fifth step
      };
      const made: TrainingStep[] = [];
      const run = async () => {
        for await (const step of trainer.run({ signal: controller.signal, onProgress })) made.push(step);
      };
      await expect(run()).rejects.toThrow(/abort/i);
      expect([trainer.step, calls]).toEqual([4, 14]);
      made.push(...(await stepsOf(trainer)));
      expect(bits(made)).toEqual(whole);
    });
  });

  test("evaluating, generating and looking change no bit of the run", async () => {
    const config = tinyRun({ steps: 6 });
    const whole = await withTrainer(lb, config, async (trainer) => bits(await stepsOf(trainer)));
    await withTrainer(lb, config, async (trainer) => {
      const made: TrainingStep[] = [];
      for await (const step of trainer.run()) {
        made.push(step);
        await trainer.evaluate({ windows: 3, mask: false });
        await trainer.generate("the", { maxTokens: 5, seed: 1 }).text();
        trainer.attend("the cat");
        await trainer.export();
      }
      expect(bits(made)).toEqual(whole);
    });
  });

  test("two things at once are refused, and harm nothing", async () => {
    await withTrainer(lb, tinyRun({ steps: 3, accumulate: 4 }), async (trainer) => {
      const run = stepsOf(trainer);
      expectError(await rejected(trainer.evaluate()), "trainer-busy", "evaluate");
      expectError(await rejected(trainer.run().next()), "trainer-busy", "run");
      expect((await run).map(({ step }) => step)).toEqual([1, 2, 3]);
    });
  });

  test("generate and attend use the weights as they are now", async () => {
    const config = tinyRun({ steps: 200, batch: 8, learningRate: 6e-3, model: { embedDim: 48 } });
    await withTrainer(lb, config, async (trainer) => {
      const before = trainer.attend("the cat sees").weights[1]![0]!.data;
      const untrained = await trainer.generate("the cat ", { maxTokens: 30 }).text();
      await stepsOf(trainer);
      const trained = await trainer.generate("the cat ", { maxTokens: 30 }).text();
      expect(trained).not.toBe(untrained);
      expect(trained).toMatch(/^(sees|likes|follows|hears|in|by|at|under) /);
      const { weights, tokens } = trainer.attend("the cat sees");
      expect(tokens.join("")).toBe("the cat sees");
      expect(weights[1]![0]!.data).not.toEqual(before);
      for (let i = 0; i < tokens.length; i++)
        for (let j = i + 1; j < tokens.length; j++) expect(weights[0]![0]!.data[i * tokens.length + j]).toBe(0);
    });
  });

  test("documents are separated by a token, at which generation ends", async () => {
    const documents = sentences(200).trim().split("\n");
    await withTrainer(lb, tinyRun({ text: documents, steps: 150, learningRate: 6e-3 }), async (trainer) => {
      await stepsOf(trainer);
      const run = trainer.generate("the cat sees my bird at nigh", { maxTokens: 12 });
      const finishes: (string | undefined)[] = [];
      for await (const { finish } of run) finishes.push(finish);
      expect(finishes.at(-1)).toBe("end");
    });
  });

  test("memory is counted, and given back", async () => {
    const before = lb.memory();
    const trainer = await lb.trainer(tinyRun());
    // Weights, gradients and two moments, at least.
    expect(lb.memory().bytes - before.bytes).toBeGreaterThan(4 * 4 * trainer.parameters);
    expect(trainer.disposed).toBe(false);
    trainer.dispose();
    trainer.dispose();
    expect(trainer.disposed).toBe(true);
    expect(lb.memory()).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
    expectError(await rejected(trainer.run().next()), "disposed");
    expectError(await rejected(trainer.save()), "disposed");
    expectError(await rejected(trainer.evaluate()), "disposed");
  });

  describe("without the causal mask", () => {
    const text = { train: noise(4000), validation: noise(600, 2) };
    const copyable = (mask: boolean) =>
      tinyRun({
        text,
        mask,
        steps: 300,
        learningRate: 5e-3,
        warmup: 20,
        batch: 8,
        model: { contextLength: 16, layers: 2 },
      });

    test("a model reads what it is to predict: its loss falls where no honest one can", async () => {
      const run = (mask: boolean) =>
        withTrainer(lb, copyable(mask), async (trainer) => {
          const steps = await stepsOf(trainer);
          const honest = await trainer.evaluate();
          const leaking = await trainer.evaluate({ mask: false });
          return { loss: steps.at(-1)!.loss, honest: honest.loss, leaking: leaking.loss };
        });
      const [masked, unmasked] = [await run(true), await run(false)];
      expect(masked.loss).toBeGreaterThan(0.9 * Math.log(8)); // nothing can be known of noise
      expect(unmasked.loss).toBeLessThan(masked.loss / 3);
      expect(unmasked.leaking).toBeLessThan(unmasked.honest / 3);
      expect(unmasked.honest).toBeGreaterThan(masked.honest);
    });
  });

  test("a learning rate that is far too high is an error before the weights are lost", async () => {
    await withTrainer(lb, tinyRun({ learningRate: 1e9, clip: 0, warmup: 0, steps: 50 }), async (trainer) => {
      expectError(await rejected(stepsOf(trainer)), "training-diverged", "learningRate");
      expectAlive(lb);
    });
  });
});

describe("R15: threads", () => {
  const instances: Lookback[] = [];
  afterAll(() => {
    for (const lb of instances) lb.dispose();
  });

  test("1 and 2 of them give the same bits", async () => {
    const runs = [];
    for (const threads of [1, 2]) {
      const lb = await createLookback({ threads });
      instances.push(lb);
      const config = tinyRun({
        steps: 6,
        dropout: 0.1,
        evaluateEvery: 3,
        text: sentences(400),
        model: { contextLength: 64 },
      });
      runs.push(
        await withTrainer(lb, config, async (trainer) => ({
          steps: bits(await stepsOf(trainer)),
          saved: Buffer.from(await trainer.save()).toString("base64"),
        })),
      );
    }
    expect(runs[1]).toEqual(runs[0]);
  });
});

describe("evaluation", () => {
  test("is the mean over all predictions, whatever the batch", async () => {
    const lb = await createLookback();
    const at = (batch: number) =>
      withTrainer(lb, tinyRun({ batch }), async (trainer) => ({ all: await trainer.evaluate(), data: trainer.data }));
    const [four, seven] = [await at(4), await at(7)];
    expect(four.all.tokens).toBe(four.data.validationTokens - 1);
    expect(seven.all).toEqual({
      ...four.all,
      loss: expect.closeTo(four.all.loss, 12),
      bitsPerCharacter: expect.any(Number),
    });
    expect(four.all.bitsPerCharacter).toBeCloseTo(four.all.loss / Math.LN2, 10); // a token is a character
    lb.dispose();
  });

  test("of another text, or of the one that it learnt from", async () => {
    const lb = await createLookback();
    await withTrainer(lb, tinyRun({ steps: 60, learningRate: 6e-3 }), async (trainer) => {
      await stepsOf(trainer);
      const [train, same, odd] = [
        await trainer.evaluate({ on: "train", windows: 20 }),
        await trainer.evaluate({ on: { text: sentences(20, 5) } }),
        await trainer.evaluate({ on: { text: "eert a rednu nam dlo eht sraeh esroh reh" } }),
      ];
      expect(Math.abs(train.loss - same.loss)).toBeLessThan(0.3);
      expect(odd.loss).toBeGreaterThan(same.loss + 1);
    });
    lb.dispose();
  });
});
