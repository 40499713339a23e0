/** <attention-steps>, and the page of the README, in Chromium. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { root } from "../../bindings/toolchain/paths.mjs";
import { seriousFindings } from "./axe.js";
import { findChromium } from "./harness.js";
import { far, ViewStand } from "./view-stand.js";

jest.setTimeout(60_000);

const chromium = findChromium();
if (!chromium) console.warn("SKIPPED: the tests of the elements need Chromium");
const withBrowser = chromium ? describe : describe.skip;

const STAGES = ["raw", "scaled", "masked", "weights"] as const;
const LENGTH = 4;
const WIDTH = 3;
const numbers = (seed: number) =>
  Array.from({ length: LENGTH * WIDTH }, (_, i) => Math.round(Math.sin(i * seed) * 1000) / 500);
const Q = { data: numbers(1.7), dims: [LENGTH, WIDTH] };
const K = { data: numbers(2.9), dims: [LENGTH, WIDTH] };
const TOKENS = ["a", "b", "c", "d"];

withBrowser("<attention-steps>", () => {
  let stand: ViewStand;
  let lb: Lookback;
  beforeAll(async () => {
    lb = await createLookback();
    stand = await ViewStand.open(chromium ?? "");
  });
  afterAll(async () => {
    await stand?.close();
    lb?.dispose();
  });

  /** The four matrices as Node.js computes them. */
  function stages(): Record<(typeof STAGES)[number], number[]> {
    const tensor = ({ data, dims }: typeof Q) => ({ data: Float32Array.from(data), dims });
    const run = (options: object) => [
      ...(lb.attention(tensor(Q), tensor(K), tensor(K), { heads: 1, causal: true, ...options }).weights?.data ?? []),
    ];
    return {
      raw: run({ scale: 1, weights: "scores" }),
      scaled: run({ weights: "scores" }),
      masked: run({ weights: "masked" }),
      weights: run({ weights: "softmax" }),
    };
  }

  /** What the four pictures show, by their CSV. */
  const shown = `[...document.querySelector("attention-steps").shadowRoot.querySelectorAll("attention-map")].map((map) =>
    map.toCSV().trim().split("\\r\\n").slice(1).flatMap((line) => line.split(",").slice(1).map(String)))`;

  test("from q and k the package itself computes the four stages (R12)", () =>
    stand.read("<attention-steps></attention-steps>", async ({ page, complaints }) => {
      await page.evaluate(
        async ({ q, k, tokens }) => {
          const address = "/package/web.js";
          const { createLookback } = await import(address);
          const steps = document.querySelector("attention-steps")!;
          steps.lb = await createLookback();
          const tensor = ({ data, dims }: typeof q) => ({ data: Float32Array.from(data), dims });
          steps.data = { q: tensor(q), k: tensor(k), tokens, options: { heads: 1, causal: true } };
          await steps.updated;
        },
        { q: Q, k: K, tokens: TOKENS },
      );
      const expected = stages();
      const seen = (await page.evaluate(shown)) as string[][];
      STAGES.forEach((stage, index) => {
        expected[stage].forEach((value, at) => {
          const number = Number(seen[index]?.[at]);
          if (Number.isFinite(value)) expect(Math.abs(number - value)).toBeLessThan(1e-5);
          else expect(number).toBe(value);
        });
      });
      const operators = await page.locator("attention-steps .operator").allTextContents();
      expect(operators).toEqual(["Q·Kᵀ", "÷ √3", "+ M", "softmax"]);
      expect(complaints).toEqual([]);
    }));

  test("four given matrices do without an engine; a missing one is said", () =>
    stand.read("<attention-steps></attention-steps>", async ({ page }) => {
      const matrix = (data: number[]) => ({ data, dims: [LENGTH, LENGTH] });
      const given = Object.fromEntries(Object.entries(stages()).map(([stage, data]) => [stage, matrix(data)]));
      const message = (data: unknown) =>
        page.evaluate(async (value) => {
          const steps = document.querySelector("attention-steps")!;
          steps.data = value;
          await steps.updated;
          return steps.shadowRoot!.querySelector<HTMLElement>(".message:not([hidden])")?.textContent ?? null;
        }, data);
      expect(await message({ ...given, tokens: TOKENS })).toBeNull();
      expect(((await page.evaluate(shown)) as string[][])[3]?.map((text) => Math.fround(Number(text)))).toEqual(
        stages().weights,
      );
      expect(await message({ ...given, masked: undefined })).toContain("'masked' is missing");
      expect(await message({ ...given, raw: [[1]], tokens: undefined })).toContain(
        "'raw' has queryLength 1, but 'weights' has 4",
      );
      expect(await message({ q: Q, k: K })).toContain("set the property lb");
    }));

  test("the same as tables, for those who hear them: four, each with its name and every number", () =>
    stand.read("<attention-steps></attention-steps>", async ({ page, complaints }) => {
      const matrix = (data: number[]) => ({ data, dims: [LENGTH, LENGTH] });
      const given = Object.fromEntries(Object.entries(stages()).map(([stage, data]) => [stage, matrix(data)]));
      await page.evaluate(
        async (data) => {
          const steps = document.querySelector("attention-steps")!;
          steps.data = data;
          await steps.updated;
        },
        { ...given, tokens: TOKENS },
      );
      const regions = page.locator("attention-steps").getByRole("region");
      expect(await regions.count()).toBe(0);
      await page.locator("attention-steps").getByRole("button", { name: "Table" }).click();
      await regions.last().waitFor();
      const told = await regions.evaluateAll((all) =>
        all.map((region) => ({
          name: region.getAttribute("aria-label"),
          caption: region.querySelector("caption")?.textContent,
          values: [...region.querySelectorAll("data")].map(({ value }) => value),
        })),
      );
      expect(told.map(({ name }) => name)).toEqual(["Scores", "Scaled", "Masked", "Weights"]);
      STAGES.forEach((stage, index) => {
        expect(told[index]?.caption).toBe(`${told[index]?.name} · Queries 0 to 3, keys 0 to 3`);
        expect(told[index]?.values).toEqual(stages()[stage].map(String));
      });
      await page.locator("attention-steps").getByRole("button", { name: "Table" }).click();
      expect(await regions.count()).toBe(0);
      expect(complaints).toEqual([]);
    }));

  test("pointing at a cell of one picture marks it in all four, and one event tells of it", () =>
    stand.read("<attention-steps></attention-steps>", async ({ page }) => {
      const matrix = (data: number[]) => ({ data, dims: [LENGTH, LENGTH] });
      const given = Object.fromEntries(Object.entries(stages()).map(([stage, data]) => [stage, matrix(data)]));
      await page.evaluate(
        async (data) => {
          const steps = document.querySelector("attention-steps")!;
          const told: unknown[] = [];
          Object.assign(globalThis, { told });
          document.addEventListener("attention-hover", (event) => told.push((event as CustomEvent).detail));
          steps.data = data;
          await steps.updated;
        },
        { ...given, tokens: TOKENS },
      );
      const place = (index: number) =>
        page.evaluate((at) => {
          const map = document.querySelector("attention-steps")!.shadowRoot!.querySelectorAll("attention-map")[at]!;
          const surface = map.shadowRoot!.querySelector(".surface")!.getBoundingClientRect();
          const box = map.drawnBox;
          return { x: surface.x + box.x + box.width * 0.3, y: surface.y + box.y + box.height * 0.6 };
        }, index);
      for (let index = 0; index < 4; index++) {
        const { x, y } = await place(index);
        await page.mouse.move(2, 2);
        const before = await page.evaluate(() => (globalThis as unknown as { told: unknown[] }).told.length);
        await page.mouse.move(x, y);
        const cells = await page.evaluate(() =>
          [...document.querySelector("attention-steps")!.shadowRoot!.querySelectorAll("attention-map")].map(
            (map) => map.cell,
          ),
        );
        expect(cells).toEqual(new Array(4).fill({ query: 2, key: 1 }));
        const told = await page.evaluate(() => (globalThis as unknown as { told: unknown[] }).told);
        expect(told).toHaveLength(before + 1);
        const { raw, scaled, weights } = stages();
        const at = 2 * LENGTH + 1;
        expect(told.at(-1)).toMatchObject({
          query: 2,
          key: 1,
          product: raw[at],
          score: scaled[at],
          weight: weights[at],
        });
      }
      const text = await page.locator("attention-steps .readout").first().textContent();
      expect(text).toContain("c → b");
      expect(text).toContain(`(${Math.round(stages().weights[2 * LENGTH + 1]! * 100)}%)`);
      expect(await seriousFindings(page)).toEqual([]);
    }));

  test("a picture of nothing is a promise that is broken, not an error in between", () =>
    stand.read(
      ["steps", "map", "heads", "text"].map((name) => `<attention-${name}></attention-${name}>`).join(""),
      async ({ page }) => {
        const told = await page.evaluate(() =>
          Promise.all(
            [...document.querySelectorAll("attention-steps, attention-map, attention-heads, attention-text")].map(
              (element) => (element as HTMLElement & { toPNG(): Promise<Blob> }).toPNG().then(String, String),
            ),
          ),
        );
        expect(told).toHaveLength(4);
        for (const each of told) expect(each).toContain("nothing to export");
      },
    ));

  test("what is saved is what is seen: CSV with every number, SVG with every cell, a PNG with their colours", () =>
    stand.read("<attention-steps numbers></attention-steps>", async ({ page, complaints }) => {
      const matrix = (data: number[]) => ({ data, dims: [LENGTH, LENGTH] });
      const expected = stages();
      const given = Object.fromEntries(Object.entries(expected).map(([stage, data]) => [stage, matrix(data)]));
      const saved = await page.evaluate(
        async (data) => {
          const steps = document.querySelector("attention-steps")!;
          const early = (() => {
            try {
              return steps.toSVG();
            } catch (error) {
              return String(error);
            }
          })();
          steps.data = data;
          await steps.updated;
          const svg = new DOMParser().parseFromString(steps.toSVG(), "image/svg+xml");
          const bitmap = await createImageBitmap(await steps.toPNG());
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
          const context = canvas.getContext("2d")!;
          context.drawImage(bitmap, 0, 0);
          const maps = [...steps.shadowRoot!.querySelectorAll("attention-map")];
          const origin = steps.shadowRoot!.querySelector(".content")!.getBoundingClientRect();
          const edge = (bitmap.width / 2 - origin.width) / 2;
          // The middle of every cell but for the number in it: near its left edge.
          const pixels = maps.map((map) => {
            const own = map.shadowRoot!.querySelector("canvas")!;
            const from = own.getContext("2d")!;
            const at = map.getBoundingClientRect();
            const { x, y, width, height } = map.drawnBox;
            return Array.from({ length: 16 }, (_, cell) => {
              const px = x + ((cell % 4) + 0.12) * (width / 4);
              const py = y + (Math.floor(cell / 4) + 0.5) * (height / 4);
              const seen = from.getImageData(Math.round(2 * px), Math.round(2 * py), 1, 1).data;
              const [dx, dy] = [edge + at.left - origin.left + px, edge + at.top - origin.top + py];
              const saved = context.getImageData(Math.round(2 * dx), Math.round(2 * dy), 1, 1).data;
              return [[...seen], [...saved]];
            });
          });
          return {
            early,
            csv: steps.toCSV(),
            broken: svg.querySelector("parsererror")?.textContent ?? "",
            drawings: [...svg.querySelectorAll("svg svg")].map((drawing) =>
              [...drawing.querySelectorAll("rect[data-value]")].map((rect) => rect.getAttribute("data-value")),
            ),
            patterns: [...svg.querySelectorAll("pattern")].map(({ id }) => id),
            used: [...svg.querySelectorAll('[fill^="url"]')].map((each) => each.getAttribute("fill")),
            texts: [...svg.querySelectorAll("text")].map((each) => each.textContent),
            width: Number(svg.documentElement.getAttribute("width")),
            png: bitmap.width,
            pixels,
          };
        },
        { ...given, tokens: TOKENS },
      );
      expect(saved.early).toContain("nothing to export");
      const lines = saved.csv.split("\r\n");
      expect(lines[0]).toBe(",,a,b,c,d");
      expect(lines).toHaveLength(1 + 4 * LENGTH + 1);
      STAGES.forEach((stage, index) => {
        for (let query = 0; query < LENGTH; query++) {
          const [name, token, ...cells] = lines[1 + index * LENGTH + query]!.split(",");
          const row = expected[stage].slice(query * LENGTH, (query + 1) * LENGTH);
          expect([name, token]).toEqual([stage, TOKENS[query]]);
          expect(cells.map((cell) => Math.fround(Number(cell)))).toEqual(row);
        }
        expect(saved.drawings[index]?.map((value) => Math.fround(Number(value)))).toEqual(expected[stage]);
      });
      expect(saved.broken).toBe("");
      expect(new Set(saved.patterns).size).toBe(4);
      for (const fill of saved.used) expect(saved.patterns.map((id) => `url(#${id})`)).toContain(fill);
      expect(saved.texts).toEqual(
        expect.arrayContaining(["Q·Kᵀ", "softmax", "Masked", "each row becomes shares of 1"]),
      );
      expect(saved.png).toBe(2 * saved.width);
      for (const pair of saved.pixels.flat()) expect(far(pair[1]!, pair[0]!)).toBeLessThanOrEqual(3);
      const menu = page.locator("attention-steps .save").first();
      await menu.locator("summary").click();
      const download = page.waitForEvent("download");
      await menu.getByRole("button", { name: "CSV" }).click();
      expect((await download).suggestedFilename()).toBe("attention.csv");
      expect(complaints).toEqual([]);
    }));

  test("the README's page works as it stands: one script tag, no build step, data as transformers.js has them", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    const example = /```html\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
    expect(example.split("\n").length).toBeLessThanOrEqual(20);
    const page = example.replace("node_modules/lookback/dist/", "/package/");
    expect(page).not.toBe(example);
    return stand.read(page, async ({ page: tab, complaints }) => {
      const logged: string[] = [];
      tab.on("console", (message) => logged.push(message.text()));
      await tab.evaluate(() => document.querySelector("attention-map")!.updated);
      const first = await tab.evaluate(() => document.querySelector("attention-map")!.toCSV().split("\r\n"));
      expect(first[0]).toBe(",·We,·drink,·tea");
      expect(first[3]).toMatch(/^·tea,0\.2\d*,0\.3\d*,0\.5$/);
      await tab.evaluate(() => {
        const map = document.querySelector("attention-map")!;
        map.shadowRoot!.querySelector<HTMLElement>(".surface")!.focus();
      });
      for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await tab.keyboard.press(key);
      expect(logged.at(-1)).toContain("·drink → ·We");
      expect(complaints).toEqual([]);
    });
  });
});
