/** The benchmark counts, compares and judges rightly; what it measures is not tested here. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inputsOf } from "./core/inputs.mjs";
import { measureInTurns, takesPart } from "./core/measure.mjs";
import { differenceOf, expectedOf } from "./core/reference.mjs";
import { NotAvailable, runCase } from "./core/run-case.mjs";
import { cases, unitOf, workOf } from "./core/workloads.mjs";
import { readmeTexts } from "./readme.mjs";
import { judge } from "./report/judge.mjs";
import { performanceSection } from "./report/readme.mjs";
import { caseReport, spreadOf } from "./report/summarise.mjs";

/** @typedef {import("./core/types.ts").Contestant} Contestant */
/** @typedef {import("./core/types.ts").Prepared} Prepared */

const settings = {
  rounds: 4,
  sampleMilliseconds: 0,
  warmUpMilliseconds: 0,
  warmUpCalls: 1,
  budgetMilliseconds: 1e3,
};

/** @type {import("./core/types.ts").Workload} */
const small = { id: "causal", title: "", kind: "attention", heads: 2, headDim: 4, length: 3, causal: true };

describe("what is counted", () => {
  test("causal attention counts the visible pairs only", () => {
    assert.equal(workOf(small).operations, 2 * (1 + 2 + 3) * 4 * 4);
    assert.equal(workOf({ ...small, causal: false }).operations, 2 * 9 * 4 * 4);
  });

  test("a linear layer counts a multiplication and an addition for each weight and row", () => {
    const linear = cases.find(({ id }) => id === "linear")?.workloads[0];
    assert.ok(linear);
    assert.equal(workOf(linear).operations, 2 * 512 * 768 * 2304);
  });

  test("one row reads every weight once, and for int8 a scale for 64 of them", () => {
    const row = /** @type {const} */ ({ id: "", title: "", kind: "row", inputs: 768, outputs: 3072 });
    assert.equal(workOf({ ...row, type: "f32" }).bytes, 4 * 768 * 3072);
    assert.equal(workOf({ ...row, type: "int8" }).bytes, 768 * 3072 + 4 * 12 * 3072);
    assert.equal(unitOf({ ...row, type: "f32" }), "GB/s");
  });

  test("a token of GPT-2 reads each of its 124 million weights once", () => {
    const [int8, f32] = cases.find(({ id }) => id === "gpt2-step")?.workloads ?? [];
    assert.ok(int8 && f32);
    assert.equal(workOf(f32).bytes, 4 * (12 * 12 * 768 * 768 + 50257 * 768));
    assert.equal(workOf(int8).bytes, (workOf(f32).bytes / 4) * (1 + 4 / 64));
    assert.equal(unitOf(f32), "GB/s");
  });

  test("a training step counts each product of the forward pass three times, and causal pairs once each", () => {
    const step = cases.find(({ id }) => id === "training-step")?.workloads[0];
    assert.ok(step);
    const products = 2048 * (4 * 12 * 256 * 256 + 256 * 256) + 4 * 2 * 256 * 8 * ((256 * 257) / 2);
    assert.equal(workOf(step).operations, 3 * 2 * products);
    assert.equal(unitOf(step), "GFLOP/s");
  });

  test("decoding reads every key and value once", () => {
    const decode = /** @type {const} */ ({
      id: "",
      title: "",
      kind: "decode",
      heads: 12,
      headDim: 64,
      keyLength: 4096,
    });
    assert.equal(workOf({ ...decode, type: "f32" }).bytes, 24 * 2 ** 20);
    assert.equal(workOf({ ...decode, type: "int8" }).bytes, 6 * 2 ** 20);
  });
});

describe("the reference", () => {
  test("gives the first causal row the first value, and weights that sum to 1", () => {
    const inputs = inputsOf({ ...small, weights: "fresh" });
    const expected = expectedOf({ ...small, weights: "fresh" }, inputs);
    assert.ok(expected?.weights);
    const values = /** @type {Float32Array} */ (inputs.values);
    assert.deepEqual([...(expected.output.rows.get(0) ?? [])], [...values.subarray(0, 4)]);
    assert.deepEqual([...(expected.weights.rows.get(3) ?? [])], [1, 0, 0]);
    for (const row of expected.weights.rows.values()) assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-12);
  });

  test("a missing row, and NaN anywhere, differ without bound", () => {
    const expected = expectedOf(small, inputsOf(small));
    assert.ok(expected);
    assert.equal(differenceOf({ output: new Float32Array(4) }, expected), Number.POSITIVE_INFINITY);
    assert.equal(differenceOf({ output: new Float32Array(24).fill(Number.NaN) }, expected), Number.POSITIVE_INFINITY);
  });
});

describe("measuring in turns", () => {
  test("every round begins with another contestant", async () => {
    /** @type {string[]} */
    const order = [];
    const calls = ["a", "b", "c"].map((name) => () => order.push(name));
    const samples = await measureInTurns(calls, { ...settings, warmUpCalls: 1 });
    assert.deepEqual(
      samples.map(({ wall }) => wall.length),
      [4, 4, 4],
    );
    // One call that is not timed and one that is, after the warm-up.
    const rounds = order.slice(-24).join("").match(/.{6}/g);
    assert.deepEqual(rounds, ["aabbcc", "bbccaa", "ccaabb", "aabbcc"]);
  });

  test("fewer samples are spread over all rounds", () => {
    const taken = Array.from({ length: 9 }, (_, round) => takesPart(round, 3, 9));
    assert.equal(taken.filter(Boolean).length, 3);
    assert.equal(taken.slice(0, 3).filter(Boolean).length, 1);
  });
});

describe("a case", () => {
  /** @param {string} id @param {() => Prepared} prepare @returns {Contestant} */
  const contestant = (id, prepare) => ({ id, role: "peer", load: async () => ({ open: async () => ({ prepare }) }) });
  const env = { bytes: async () => new Uint8Array(), model: async () => new Uint8Array(), entering() {} };
  const expected = expectedOf(small, inputsOf(small));
  const right = new Float32Array(24);
  for (const [row, values] of expected?.output.rows ?? []) right.set(values, row * 4);

  test("times who is right, fails who is wrong, and says why one is missing", async () => {
    let wrongCalls = 0;
    const rows = await runCase(
      [small],
      [
        contestant("right", () => ({ call: () => right, read: (output) => ({ output: /** @type {any} */ (output) }) })),
        contestant("wrong", () => ({
          call: () => ++wrongCalls,
          read: () => ({ output: right.map((value) => value + 0.01) }),
        })),
        contestant("missing", () => {
          throw new NotAvailable("has no attention");
        }),
      ],
      env,
      settings,
    );
    assert.deepEqual(
      rows.map(({ status, reason }) => [status, reason]),
      [
        ["measured", undefined],
        ["wrong", "differs from the reference"],
        ["not available", "has no attention"],
      ],
    );
    assert.equal(rows[0]?.samples?.wall.length, 4);
    assert.equal(wrongCalls, 1);
    assert.ok(Math.abs((rows[1]?.difference ?? 0) - 0.01) < 1e-6);
  });

  test("one that took its process down before is not started again", async () => {
    const crashing = contestant("crashing", () => assert.fail("it was started"));
    const [row] = await runCase([small], [crashing], env, settings, new Map([["crashing", "its process ended"]]));
    assert.equal(row?.reason, "its process ended");
  });
});

describe("verdicts", () => {
  /** @param {string} contestant @param {number} milliseconds @param {number} operations */
  const row = (contestant, milliseconds, operations) =>
    /** @type {import("./core/types.ts").RawRow} */ ({
      workload: "causal",
      contestant,
      status: "measured",
      work: { operations, bytes: 0 },
      samples: { wall: [milliseconds], cpu: [milliseconds], calls: 1 },
    });
  const machine = /** @type {import("./core/types.ts").Machine} */ ({});
  const finished = /** @type {const} */ ({ format: 1, date: "", quick: false, machine: { ...machine, versions: {} } });
  /** @param {number} milliseconds of ours */
  const verdicts = (milliseconds) => {
    const benchCase = cases.find(({ id }) => id === "causal-1024");
    assert.ok(benchCase);
    const rows = [
      row("ceiling-simd", 1, 50e6),
      row("lookback-simd", milliseconds, 50e6),
      row("onnxruntime-web", 4.5, 50e6),
    ];
    const report = caseReport(benchCase, benchCase.workloads, rows);
    return judge({ format: 1, date: "", quick: false, machine, cases: [report] });
  };

  test("a share of the ceiling and a ratio to a peer are met or not", () => {
    const good = verdicts(1.25).filter(({ variant }) => variant === "simd");
    assert.deepEqual(
      good.map(({ value, met }) => [value, met]),
      [
        [0.8, true],
        [3.6, true],
        [undefined, null],
      ],
    );
    const bad = verdicts(1.5).filter(({ variant }) => variant === "simd");
    assert.deepEqual(
      bad.map(({ met }) => met),
      [false, false, null],
    );
  });

  test("two threads are held against what both cores do at once, and the verdict says how much that is", () => {
    const benchCase = cases.find(({ id }) => id === "causal-1024");
    assert.ok(benchCase);
    const rows = [
      row("ceiling-simd", 1, 50e6),
      row("ceiling-simd-2", 1, 80e6),
      row("lookback-simd", 2, 50e6),
      row("lookback-simd-2", 1.25, 50e6),
    ];
    const report = caseReport(benchCase, benchCase.workloads, rows);
    const ours = report.rows.filter(({ role }) => role === "ours");
    assert.deepEqual(
      ours.map(({ share }) => share),
      [0.5, 0.5],
    );
    const threads = judge({ format: 1, date: "", quick: false, machine, cases: [report] }).filter(({ text }) =>
      text.startsWith("2 threads"),
    );
    assert.equal(threads[0]?.text, "2 threads ≥ 1.85 × one (registers alone: 1.60 ×)");
    assert.equal(threads[0]?.value, 1.6);
    assert.equal(threads[0]?.met, false);
  });

  test("what was not measured is neither met nor not met", () => {
    for (const { variant, met } of verdicts(1)) if (variant === "relaxed") assert.equal(met, null);
  });

  test("tokens are counted by the second, as many as there were", () => {
    const benchCase = cases.find(({ id }) => id === "generate");
    assert.ok(benchCase);
    const text = (/** @type {string} */ workload, /** @type {number} */ tokens) => ({
      ...row("lookback-simd", 20, 0),
      workload,
      work: { operations: 0, bytes: 0, tokens },
    });
    const report = caseReport(benchCase, benchCase.workloads, [text("sampled", 130), text("greedy", 180)]);
    const found = judge({ format: 1, date: "", quick: false, machine, cases: [report] });
    assert.deepEqual(
      found.map(({ variant, value, unit, met }) => [variant, value, unit, met]),
      [
        ["simd", 6500, "tokens/s", false],
        ["relaxed", undefined, "tokens/s", null],
        ["simd", 9000, "tokens/s", true],
        ["relaxed", undefined, "tokens/s", null],
      ],
    );
    for (const [language, cell] of /** @type {const} */ ([
      ["en", "| 9,000 tokens/s |"],
      ["zh", "| 9,000 词元/秒 |"],
    ])) {
      const whole = { ...finished, cases: [report], verdicts: [] };
      assert.ok(performanceSection(whole, [], language).includes(cell), language);
    }
  });

  test("quartiles are those of the samples", () => {
    const { median, lowerQuartile, upperQuartile, minimum, count } = spreadOf([5, 1, 4, 2, 3]);
    assert.deepEqual([minimum, lowerQuartile, median, upperQuartile, count], [1, 2, 3, 4, 5]);
  });
});

test("a quick run measures ours, right, beside the ceiling of its variant", () => {
  const folder = mkdtempSync(join(tmpdir(), "lookback-bench-test-"));
  try {
    const json = join(folder, "report.json");
    const run = fileURLToPath(new URL("run.mjs", import.meta.url));
    const args = [
      "--quick",
      "--filter",
      "causal-128,gpt2-step,generate",
      "--only",
      "lookback-simd",
      "--node",
      "system",
      "--json",
      json,
    ];
    execFileSync(process.execPath, [run, ...args], { stdio: "ignore" });
    /** @type {import("./core/types.ts").Report} */
    const { cases: reports } = JSON.parse(readFileSync(json, "utf8"));
    const oursOf = (/** @type {string} */ name) =>
      reports.find(({ id }) => id === name)?.rows.filter(({ contestant }) => contestant === "lookback-simd") ?? [];
    const [ours] = oursOf("causal-128");
    assert.equal(ours?.status, "measured");
    assert.ok((ours.difference ?? 1) < 1e-5);
    assert.ok((ours.share ?? 0) > 0);
    const steps = oursOf("gpt2-step");
    assert.deepEqual(
      steps.map(({ workload, status }) => [workload, status]),
      [
        ["int8", "measured"],
        ["f32", "measured"],
      ],
    );
    assert.ok(steps.every(({ share }) => (share ?? 0) > 0));
    for (const text of oursOf("generate")) {
      if (text.status === "measured") assert.ok((text.rate ?? 0) > 0);
      else assert.match(text.reason ?? "", /is not beside this checkout/);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the READMEs say what the results say (npm run bench:readme)", () => {
  for (const { file, now, wanted } of readmeTexts()) assert.equal(now, wanted, file);
});
