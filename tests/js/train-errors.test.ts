/** What a trainer refuses: the code, what the message shows, that nothing is held, and that the instance goes on. */
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type ErrorCode, type Lookback } from "lookback";
import { VERSION } from "../../dist/version.js";
import { savedBy, stateOf } from "./support/checkpoints.ts";
import { sentences, tinyRun } from "./support/corpora.ts";
import { expectAlive, expectError, rejected } from "./support/helpers.js";
import { loose } from "./support/refusals.js";
import { safetensors } from "./support/safetensors.ts";

jest.setTimeout(120_000); // a model learns in it, on whatever machine

let lb: Lookback;
beforeAll(async () => {
  lb = await createLookback();
});
afterAll(() => lb.dispose());

async function refused(config: unknown, code: ErrorCode, ...shown: string[]): Promise<void> {
  const before = lb.memory();
  expectError(await rejected(loose(lb).trainer(config)), code, ...shown);
  expect(lb.memory()).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
  expectAlive(lb);
}

const text = sentences(50);
const CONFIGS: [what: string, config: unknown, code: ErrorCode, shown: string[]][] = [
  ["no text", {}, "bad-option", ["text is missing"]],
  ["nothing", undefined, "bad-option", ["text is missing"]],
  ["a text in place of the options", text, "bad-option", ["options must be an object"]],
  ["an empty text", { text: "" }, "bad-option", ["text", "none of them empty"]],
  ["a list of other things", { text: ["a", 7] }, "bad-option", ["list of documents"]],
  ["half a split", { text: { train: text } }, "bad-option", ["validation is missing"]],
  ["a split by other names", { text: { train: text, test: text } }, "unknown-option", ["'test'"]],
  ["an option that does not exist", { text, learning_rate: 1 }, "unknown-option", ["Did you mean 'learningRate'?"]],
  ["the name of another library", { text, batchSize: 1 }, "unknown-option", ["Did you mean 'batch'?"]],
  [
    "a size that does not exist",
    { text, model: { nLayers: 1 } },
    "unknown-option",
    ["model", "Did you mean 'layers'?"],
  ],
  ["a family that does not exist", { text, model: { family: "bert" } }, "bad-option", ["'gpt2' or 'llama'", '"bert"']],
  ["heads that do not divide", { text, model: { heads: 3 } }, "embed-dim-not-divisible", ["128", "3 heads"]],
  ["kv heads that do not divide", { text, model: { family: "llama", kvHeads: 3 } }, "kv-heads-not-divisor", ["3", "4"]],
  ["kv heads of GPT-2", { text, model: { kvHeads: 2 } }, "bad-option", ["'llama'"]],
  ["odd heads of Llama", { text, model: { family: "llama", heads: 4, embedDim: 12 } }, "bad-option", ["3", "even"]],
  ["a batch of 0", { text, batch: 0 }, "bad-option", ["batch", "≥ 1", "0"]],
  ["a length beyond the context", { text, length: 200 }, "bad-option", ["at most", "128", "200"]],
  ["a text that is too short", { text: "hello\nyou" }, "text-too-short", ["windows of 128", "at least 129"]],
  ["an unknown tokenizer", { text, tokenizer: "words" }, "bad-option", ["'characters' or { bpe: size }", '"words"']],
  ["a BPE without its bytes", { text, tokenizer: { bpe: 100 } }, "bad-option", ["257", "100"]],
  ["a dropout of 1", { text, dropout: 1 }, "bad-option", ["dropout", "below 1"]],
  ["all of the text for validation", { text, validation: 1 }, "bad-option", ["validation", "below 1"]],
  [
    "validation given twice",
    { text: { train: text, validation: text }, validation: 0.1 },
    "bad-option",
    ["given twice", "0.1"],
  ],
  [
    "a least rate above the highest",
    { text, learningRate: 1e-3, minLearningRate: 1 },
    "bad-option",
    ["at most", "0.001"],
  ],
  ["a prompt of nothing", { text, samplePrompt: "" }, "bad-option", ["samplePrompt", "not empty"]],
  ["a checkpoint of text", { text, checkpoint: "x" }, "bad-option", ["what save() gave"]],
  ["a checkpoint of other bytes", { text, checkpoint: new Uint8Array(100) }, "invalid-checkpoint", ["no safetensors"]],
  [
    "a model in place of a checkpoint",
    { text, checkpoint: safetensors({ x: { dims: [1], values: [1] } }) },
    "invalid-checkpoint",
    ["not one of a trainer"],
  ],
  ["more than the memory there is", { text, batch: 100000 }, "too-large", ["4294967296"]],
];

describe("lb.trainer() refuses", () => {
  test.each(CONFIGS)("%s", (_what, config, code, shown) => refused(config, code, ...shown));
});

describe("a checkpoint that does not fit", () => {
  let checkpoint: Uint8Array<ArrayBuffer>;
  const config = tinyRun({ steps: 4 });
  beforeAll(async () => {
    const trainer = await lb.trainer(config);
    await trainer.run().next();
    checkpoint = await trainer.save();
    trainer.dispose();
  });

  test("another text", async () => {
    const other = sentences(300, 2);
    await refused({ checkpoint, text: other }, "checkpoint-mismatch", "another text", "fingerprint");
  });

  test("a text that is missing", () => refused({ checkpoint }, "bad-option", "text is missing", "checkpoint"));

  const others: [name: string, option: object, ...shown: string[]][] = [
    ["seed", { seed: 2 }, "seed was 1", "is 2 now"],
    ["model: layers", { model: { layers: 3 } }, "layers was 2", "is 3 now"],
    ["tokenizer", { tokenizer: { bpe: 300 } }, 'tokenizer was "characters"', '{"bpe":300}'],
    ["mask", { mask: false }, "mask was true", "is false now"],
  ];
  test.each(others)("another %s", (_name, option, ...shown) =>
    refused({ checkpoint, text: config.text, ...option }, "checkpoint-mismatch", ...shown),
  );

  test("R15: another variant, or a multiply-add that rounds otherwise, unless otherEngine says that it may be", async () => {
    const other = lb.fused ? "unfused" : "fused";
    const elsewhere: [checkpoint: Uint8Array, ...shown: string[]][] = [
      [savedBy({ variant: "wide" }, checkpoint), "saved by variant 'wide'", `variant: 'wide'`, "otherEngine: true"],
      [savedBy({ variant: "relaxed", fused: !lb.fused }, checkpoint), `'relaxed' with ${other}`],
    ];
    for (const [from, ...shown] of elsewhere) {
      await refused({ checkpoint: from, text: config.text }, "checkpoint-mismatch", `'${lb.variant}'`, ...shown);
      await refused({ checkpoint: from, text: config.text, otherEngine: false }, "checkpoint-mismatch", ...shown);
      const trainer = await lb.trainer({ checkpoint: from, text: config.text, otherEngine: true });
      expect([trainer.step, (await trainer.run().next()).value]).toMatchObject([1, { step: 2 }]);
      expect(stateOf(await trainer.save()).engine).toEqual(stateOf(checkpoint).engine);
      trainer.dispose();
    }
  });

  test("one that does not say what saved it is taken, and the next one says it", async () => {
    const trainer = await lb.trainer({ checkpoint: savedBy(undefined, checkpoint), text: config.text });
    const { variant, fused } = lb;
    expect(stateOf(await trainer.save())).toMatchObject({ step: 1, engine: { variant, fused, version: VERSION } });
    trainer.dispose();
  });

  test("otherEngine without a checkpoint", () =>
    refused({ text: config.text, otherEngine: true }, "bad-option", "otherEngine", "checkpoint"));

  test("the same options and other reports are taken", async () => {
    const again = { ...config, checkpoint, steps: 9, evaluateEvery: 3 };
    const trainer = await lb.trainer(again);
    expect([trainer.step, trainer.config.steps, trainer.config.evaluateEvery]).toEqual([1, 9, 3]);
    expect(trainer.config.learningRate).toBe(config.learningRate);
    trainer.dispose();
  });

  test("a file that was cut off", () =>
    refused({ checkpoint: checkpoint.slice(0, -4), text: config.text }, "invalid-checkpoint", "cut off"));

  test("a file with a tensor of another name", () => {
    const broken = Buffer.from(checkpoint);
    broken.set(Buffer.from("X"), broken.indexOf("firstMoments."));
    return refused({ checkpoint: broken, text: config.text }, "invalid-checkpoint", "firstMoments");
  });
});

describe("calls of a trainer refuse", () => {
  const options: [
    what: string,
    call: (trainer: ReturnType<typeof loose>) => Promise<unknown>,
    code: ErrorCode,
    shown: string,
  ][] = [
    ["run: an unknown option", (t) => t.run({ onprogress: () => {} }).next(), "unknown-option", "onProgress"],
    ["run: a callback that is none", (t) => t.run({ onProgress: 1 }).next(), "bad-option", "a function"],
    ["run: a signal that is none", (t) => t.run({ signal: 1 }).next(), "bad-option", "AbortSignal"],
    ["evaluate: a part that is none", (t) => t.evaluate({ on: "test" }), "bad-option", "'validation', 'train'"],
    ["evaluate: an empty text", (t) => t.evaluate({ on: { text: "" } }), "bad-option", "not empty"],
    ["evaluate: a text of one token", (t) => t.evaluate({ on: { text: "a" } }), "text-too-short", "1 tokens"],
    ["evaluate: a stride beyond the window", (t) => t.evaluate({ stride: 33 }), "bad-option", "32"],
    ["export: bf16", (t) => t.export({ dtype: "bf16" }), "bad-option", "'f16' or 'f32'"],
  ];

  test.each(options)("%s", async (_what, call, code, shown) => {
    const trainer = await lb.trainer(tinyRun());
    expectError(await rejected(call(trainer)), code, shown);
    expect((await trainer.run().next()).value).toMatchObject({ step: 1 });
    trainer.dispose();
  });

  test("evaluate where nothing was kept back", async () => {
    const trainer = await lb.trainer(tinyRun({ validation: 0 }));
    expectError(await rejected(trainer.evaluate()), "text-too-short", "on: { text }");
    trainer.dispose();
  });
});
