/** The same page and the same package in every engine: what they show and compute is what Node.js computes. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { testNode } from "../../bindings/toolchain/nodes.mjs";
import { root } from "../../bindings/toolchain/paths.mjs";
import type { attend } from "./attend.mjs";
import { seriousIn } from "./axe.js";
import type { Engine, Launcher, Tab } from "./driver.js";
import { chromiumLauncher } from "./engine-chromium.js";
import { firefoxLauncher } from "./engine-firefox.js";
import { webKitLauncher } from "./engine-webkit.js";
import { type Server, serveDemo } from "./harness.js";

jest.setTimeout(90_000);

type Task = Parameters<typeof attend>[1];
type Results = Awaited<ReturnType<typeof attend>>;

const DESK = { width: 1280, height: 900 };

/** The same task in Node.js, with the variant the page runs: relaxed SIMD needs a Node newer than this process may be. */
function inNode(task: Task): Results {
  const node = testNode(task.variant);
  if (!node) throw new Error(`no Node.js here runs the variant ${task.variant}`);
  const program = fileURLToPath(new URL("attend.mjs", import.meta.url));
  const env = { ...process.env, NODE_OPTIONS: "" };
  return JSON.parse(
    execFileSync(node, [program], { cwd: root, env, input: JSON.stringify(task), maxBuffer: 2 ** 28 }).toString(),
  );
}

/** Numbers that every engine makes alike. */
const numbers = (count: number, seed: number) =>
  Array.from({ length: count }, (_, i) => ((Math.imul(i + seed, 0x9e3779b1) >>> 8) % 4001) / 1000 - 2);

/** The rows of a matrix as its table says them, in full precision. */
function twin(tab: Tab, chapter: string, id: string): Promise<string[][]> {
  return tab.evaluate(
    (selector) =>
      [...document.querySelectorAll(selector)].map((line) =>
        [...line.querySelectorAll("data")].map((cell) => cell.value),
      ),
    `#chapter-${chapter} table[data-twin="${id}"] tbody tr`,
  );
}

const matrix = (rows: string[][]) => ({
  data: rows.flat().map(Number),
  dims: [rows.length, rows[0]?.length ?? 0],
});

function transposed(rows: string[][]): string[][] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? ""));
}

function theEngine({ name, launch }: Launcher, server: () => Server): void {
  let engine: Engine;
  beforeAll(async () => {
    engine = await launch();
  });
  afterAll(() => engine?.close());

  async function reading(address: string, act: (tab: Tab) => Promise<void>): Promise<void> {
    const tab = await engine.open(DESK);
    try {
      await tab.goto(`${server().url}${address}`);
      await act(tab);
      expect(await tab.complaints()).toEqual([]);
    } finally {
      await tab.close();
    }
  }

  const ready = async (tab: Tab) => {
    await tab.wait(() => document.querySelector("#page[data-ready]") !== null);
    await tab.evaluate(() => document.fonts.ready.then(() => true));
  };

  test("R15: the page shows the numbers that Node.js computes with the same variant, bit by bit, whatever the mask", () =>
    reading("#lang=en", async (tab) => {
      await ready(tab);
      const variant = (await tab.evaluate(
        () => document.querySelector<HTMLElement>(".engine")?.dataset.variant ?? "",
      )) as Task["variant"];
      expect(variant).toBe(name === "WebKitGTK" ? "simd" : "relaxed");
      const tensors = [
        matrix(await twin(tab, "scores", "q")),
        matrix(transposed(await twin(tab, "scores", "kt"))),
        matrix(await twin(tab, "output", "v")),
      ];
      const causal = { heads: 1, causal: true, logSumExp: true };
      const { results, fused } = inNode({
        variant,
        threads: 1,
        tensors,
        calls: [
          { ...causal, weights: "softmax" },
          { ...causal, weights: "masked" },
          { heads: 1, weights: "softmax" },
        ],
      });
      const shown = await tab.evaluate(() => document.querySelector<HTMLElement>(".engine")?.dataset.fused ?? "");
      expect(shown).toBe(String(fused));
      expect((await twin(tab, "mask", "a")).flat()).toEqual(results[0]?.[1]);
      expect((await twin(tab, "output", "out")).flat()).toEqual(results[0]?.[0]);
      expect((await twin(tab, "mask", "masked")).flat()).toEqual(results[1]?.[1]);
      await tab.click('#chapter-mask > .mask-choice label[data-value="off"]');
      await tab.wait(() => location.hash.includes("mask=off"));
      expect((await twin(tab, "mask", "a")).flat()).toEqual(results[2]?.[1]);
      expect((await twin(tab, "output", "out")).flat()).toEqual(results[2]?.[0]);
    }));

  test("keyboard and pointer reach the page: heads, a cell spelled out, the language", () =>
    reading("#lang=en", async (tab) => {
      await ready(tab);
      await tab.evaluate(() => document.querySelector<HTMLElement>('#chapter-heads input[type="range"]')?.focus());
      await tab.press("End");
      const heads = () =>
        tab.evaluate(() => document.querySelectorAll('#chapter-heads canvas[data-matrix^="head-"]').length);
      expect(await heads()).toBe(8);
      await tab.press("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft");
      expect(await heads()).toBe(4);

      await tab.evaluate(() =>
        document.querySelector<HTMLElement>('#chapter-scores canvas[data-matrix="raw"]')?.focus(),
      );
      await tab.press("ArrowDown", "ArrowRight", "ArrowRight");
      const spelled = await tab.evaluate(
        () => document.querySelector<HTMLDataElement>("#chapter-scores .inspector data.result")?.value,
      );
      expect(spelled).toBe((await twin(tab, "scores", "raw"))[1]?.[2]);

      await tab.hover('#chapter-output canvas[data-matrix="out"]');
      await tab.wait(() => document.querySelector("#chapter-output data.result") !== null);

      await tab.click('.language label[data-value="zh"]');
      await tab.wait(() => document.documentElement.lang === "zh-CN");
      expect(await tab.evaluate(() => document.querySelector("h1")?.textContent)).toBe("只许回头看的注意力");
    }));

  test.each(["en", "zh"])("axe finds nothing serious in the page in %s, and nothing runs out of it", (lang) =>
    reading(`#lang=${lang}&mask=off&heads=4`, async (tab) => {
      await ready(tab);
      expect(await seriousIn(tab)).toEqual([]);
      expect(await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBeLessThanOrEqual(0);
      await tab.screenshot(`${name}-${lang}-start`);
      await tab.evaluate(() => document.querySelector("#chapter-mask")?.scrollIntoView({ behavior: "instant" }));
      await tab.screenshot(`${name}-${lang}-mask`);
    }),
  );

  test("R15: a longer text gives Node's bits in this engine, on one thread and on two where there are threads", () =>
    reading("tests/blank.html", async (tab) => {
      const [length, width] = [96, 64];
      const tensors = [1, 2, 3].map((seed) => ({ data: numbers(length * width, seed * 977), dims: [length, width] }));
      const calls = [
        { heads: 4, causal: true, weights: "softmax", logSumExp: true },
        { heads: 4, window: { left: 8, right: 3 }, softcap: 5, weights: "masked" },
      ];
      const inPage = (task: Task) =>
        tab.evaluate(
          async (given, engine, attention) => {
            const { createLookback } = await import(engine);
            const { attend: run } = (await import(attention)) as { attend: typeof attend };
            return run(createLookback, given);
          },
          task,
          "/package/web.js",
          "/tests/attend.mjs",
        );
      const isolated = await tab.evaluate(
        () => globalThis.crossOriginIsolated && typeof SharedArrayBuffer === "function",
      );
      expect(isolated).toBe(name !== "WebKitGTK");
      for (const variant of name === "WebKitGTK" ? (["simd"] as const) : (["simd", "relaxed"] as const)) {
        const expected = inNode({ variant, threads: 1, tensors, calls });
        for (const threads of isolated ? [1, 2] : [1]) {
          const actual = await inPage({ variant, threads, tensors, calls });
          expect({ ...actual, threads: 1 }).toEqual(expected);
          expect(actual.threads).toBe(threads);
        }
      }
    }));
}

describe("in every engine", () => {
  let server: Server;
  beforeAll(async () => {
    server = await serveDemo();
  }, 180_000);
  afterAll(() => server?.close());

  for (const launcher of [chromiumLauncher, firefoxLauncher, webKitLauncher]) {
    const missing = launcher.missing();
    if (missing) console.warn(`SKIPPED: these tests need ${missing}`);
    (missing ? describe.skip : describe)(launcher.name, () => theEngine(launcher, () => server));
  }
});
