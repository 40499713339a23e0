/** The overview of <attention-heads> where it is large, narrow or in another direction, and how elements share the page's time. */
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { findChromium } from "./harness.js";
import { type ViewPage, ViewStand } from "./view-stand.js";

jest.setTimeout(90_000);

const chromium = findChromium();
if (!chromium)
  console.warn("SKIPPED: the view's tests need Chromium (apt-get install chromium, or LOOKBACK_CHROMIUM=path)");

interface Element extends HTMLElement {
  data: unknown;
  readonly updated: Promise<void>;
  toPNG(): Promise<Blob>;
}

/** Each head looks at a key of its own, so that none can be taken for another. */
const prepare = ({ layers, heads, queries, keys }: Record<"layers" | "heads" | "queries" | "keys", number>) => {
  const weights = Array.from({ length: layers }, (_, layer) => {
    const data = new Float32Array(heads * queries * keys).fill(0.1 / keys);
    for (let row = 0; row < heads * queries; row++)
      data[row * keys + ((Math.floor(row / queries) + layer) % keys)] = 0.9;
    return { data, dims: [1, heads, queries, keys] };
  });
  Object.assign(globalThis, { given: { weights, queryOffset: null } });
};

/** Waits until all pictures are as fine as the screen. */
const fine = (page: Page) =>
  page.waitForFunction(() => {
    const canvases = [
      ...(document.querySelector("attention-heads")?.shadowRoot?.querySelectorAll(".overview canvas") ?? []),
    ];
    return (
      canvases.length > 0 &&
      canvases.every(
        (canvas) =>
          (canvas as HTMLCanvasElement).width === Math.round(canvas.getBoundingClientRect().width * devicePixelRatio),
      )
    );
  });

/** Of each head's picture, by its button: the column whose pixels are darkest, as a share of the picture's width. */
const favourites = (page: Page) =>
  page.evaluate(() => {
    const root = document.querySelector("attention-heads")!.shadowRoot!;
    const buttons = [...root.querySelectorAll<HTMLElement>(".thumbnail")];
    const canvases = [...root.querySelectorAll<HTMLCanvasElement>(".overview canvas")];
    const perLayer = buttons.length / canvases.length;
    return buttons.map((button, index) => {
      const canvas = canvases[Math.floor(index / perLayer)]!;
      const lies = canvas.getBoundingClientRect();
      const box = button.getBoundingClientRect();
      const factor = canvas.width / lies.width;
      const from = Math.round((box.left - lies.left) * factor);
      const width = Math.round(box.width * factor);
      const { data } = canvas.getContext("2d")!.getImageData(from, 1, width, 1);
      let darkest = 0;
      const light = (x: number) =>
        data[4 * x]! + data[4 * x + 1]! + data[4 * x + 2]! + (data[4 * x + 3] === 0 ? 1000 : 0);
      for (let x = 1; x < width; x++) if (light(x) < light(darkest)) darkest = x;
      return darkest / width;
    });
  });

(chromium ? describe : describe.skip)("the overview of <attention-heads> in Chromium", () => {
  let stand: ViewStand;
  beforeAll(async () => {
    stand = await ViewStand.open(chromium!);
  }, 60_000);
  afterAll(() => stand?.close());

  const shown = (
    sizes: Parameters<typeof prepare>[0],
    act: (view: ViewPage) => Promise<void>,
    html = "",
    options = {},
  ) =>
    stand.read(
      html || "<attention-heads view='overview'></attention-heads>",
      async (view) => {
        await view.page.evaluate(prepare, sizes);
        await view.page.evaluate(async () => {
          const element = document.querySelector<Element>("attention-heads")!;
          element.data = Reflect.get(globalThis, "given");
          await element.updated;
        });
        await act(view);
        expect(view.complaints).toEqual([]);
      },
      options,
    );
  const expected = ({ layers, heads, keys }: Parameters<typeof prepare>[0]) =>
    Array.from({ length: layers * heads }, (_, i) => ((i % heads) + Math.floor(i / heads)) % keys);

  test("many pictures are first as coarse as CSS pixels, then as fine as the screen; what is saved is fine", () => {
    const sizes = { layers: 12, heads: 10, queries: 100, keys: 100 };
    return shown(sizes, async ({ page }) => {
      const busy = await page.evaluate(() => {
        const overview = document.querySelector("attention-heads")!.shadowRoot!.querySelector(".overview")!;
        const widths = [...overview.querySelectorAll("canvas")].map(({ width }) => width);
        return { coarse: widths.filter((width) => width > 300).length, busy: overview.getAttribute("aria-busy") };
      });
      expect([null, "true"]).toContain(busy.busy);
      expect(busy.coarse).toBeGreaterThan(0);
      await fine(page);
      const found = await favourites(page);
      expect(found.map((share) => Math.floor(share * sizes.keys))).toEqual(expected(sizes));
      const saved = await page.evaluate(async () => {
        const element = document.querySelector<Element>("attention-heads")!;
        const overview = element.shadowRoot!.querySelector(".overview")!;
        element.data = { ...Reflect.get(globalThis, "given") };
        await element.toPNG();
        return [...overview.querySelectorAll("canvas")].map(
          (canvas) => canvas.width / canvas.getBoundingClientRect().width,
        );
      });
      for (const density of saved) expect(density).toBeCloseTo(2, 2);
    });
  });

  test.each([1, 1.5, 2])(
    "each picture lies in its button at %d pixels per CSS pixel, on pages from right to left, too",
    (deviceScaleFactor) => {
      const sizes = { layers: 2, heads: 4, queries: 8, keys: 8 };
      return shown(
        sizes,
        async ({ page }) => {
          await fine(page);
          const found = await favourites(page);
          expect(found.map((share) => Math.floor(share * sizes.keys))).toEqual(expected(sizes));
        },
        '<div dir="rtl"><attention-heads view="overview"></attention-heads></div>',
        { deviceScaleFactor },
      );
    },
  );

  test("names of layers have room where there are few queries; very many heads are drawn more coarsely, but drawn", async () => {
    await shown({ layers: 3, heads: 8, queries: 2, keys: 64 }, async ({ page }) => {
      const heights = await page.evaluate(() => {
        const root = document.querySelector("attention-heads")!.shadowRoot!;
        const names = [...root.querySelectorAll<HTMLElement>("[role=rowheader]")].map((each) =>
          each.getBoundingClientRect(),
        );
        return names.slice(1).map((name, i) => name.top - names[i]!.bottom);
      });
      for (const gap of heights) expect(gap).toBeGreaterThanOrEqual(0);
    });
    await shown({ layers: 1, heads: 2000, queries: 4, keys: 4 }, async ({ page }) => {
      const seen = await page.evaluate(() => {
        const canvas = document
          .querySelector("attention-heads")!
          .shadowRoot!.querySelector<HTMLCanvasElement>(".overview canvas")!;
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, 1);
        return { width: canvas.width, blank: data.every((value) => value === 0) };
      });
      expect(seen.width).toBeLessThanOrEqual(16384);
      expect(seen.blank).toBe(false);
    });
  });

  test("weights by their values are drawn anew", () =>
    shown({ layers: 1, heads: 2, queries: 4, keys: 4 }, async ({ page }) => {
      const pixels = () =>
        page.evaluate(() => {
          const canvas = document
            .querySelector("attention-heads")!
            .shadowRoot!.querySelector<HTMLCanvasElement>(".overview canvas")!;
          return [...canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height).data].join();
        });
      await page.evaluate(async () => {
        const element = document.querySelector<Element>("attention-heads")!;
        const v = { data: Float32Array.from({ length: 8 }, (_, i) => 1 + i), dims: [4, 2] };
        element.data = { ...Reflect.get(globalThis, "given"), v };
        await element.updated;
      });
      const plain = await pixels();
      await page.evaluate(async () => {
        const element = document.querySelector<Element>("attention-heads")!;
        element.toggleAttribute("value-weighted", true);
        await element.updated;
      });
      expect(await pixels()).not.toBe(plain);
    }));

  test("a message stays until what was wrong is mended", () =>
    shown(
      { layers: 1, heads: 2, queries: 4, keys: 4 },
      async ({ page }) => {
        const states = () =>
          page.evaluate(async () => {
            await new Promise((resolve) => setTimeout(resolve, 200));
            return ["attention-heads", "attention-map"].map((name) => {
              const root = document.querySelector(name)!.shadowRoot!;
              return ["message", "content"].map((part) => root.querySelector<HTMLElement>(`[part~=${part}]`)!.hidden);
            });
          });
        const choose = (layer: string) =>
          page.evaluate((wanted) => {
            for (const element of document.querySelectorAll("attention-heads, attention-map"))
              element.setAttribute("layer", wanted);
          }, layer);
        await choose("3");
        expect(await states()).toEqual([
          [false, true],
          [false, true],
        ]);
        await choose("0");
        expect(await states()).toEqual([
          [true, false],
          [true, false],
        ]);
      },
      '<attention-heads id="leader"></attention-heads><attention-map for="leader"></attention-map>',
    ));

  test("elements that are drawn at one moment take a task each where that is long, and all are drawn", () =>
    shown(
      { layers: 1, heads: 2, queries: 300, keys: 300 },
      async ({ page }) => {
        const drawn = await page.evaluate(async () => {
          const maps = [...document.querySelectorAll<Element>("attention-map")];
          const reads: number[] = [];
          const tasks: PerformanceEntry[] = [];
          new PerformanceObserver((list) => {
            tasks.push(...list.getEntries());
          }).observe({ type: "longtask" });
          /** For each read, the number of the task that it was in. */
          const tasksOfReads = () =>
            reads.map((time) =>
              tasks.findIndex((task) => time >= task.startTime && time < task.startTime + task.duration),
            );
          // Data that take longer to read than a task may without being noticed (50 ms), each time.
          const slow = () => ({
            get weights() {
              const until = performance.now() + 60;
              reads.push(until - 30);
              while (performance.now() < until);
              return [
                [
                  [1, 0],
                  [0.5, 0.5],
                ],
              ];
            },
          });
          // What the test's driver begins is not told of: the drawing begins in a task of the page.
          await new Promise((resolve) => setTimeout(resolve));
          await Promise.all(
            maps.map(async (map) => {
              map.data = slow();
              await map.updated;
            }),
          );
          // Tasks are told of after they ended.
          const end = performance.now() + 5000;
          while (tasksOfReads().includes(-1) && performance.now() < end)
            await new Promise((resolve) => setTimeout(resolve, 20));
          return {
            tasks: tasksOfReads(),
            shapes: maps.map((map) => (map as unknown as { attention: { queryLength: number } }).attention.queryLength),
          };
        });
        expect(drawn.tasks).not.toContain(-1);
        expect(drawn.tasks).toHaveLength(4);
        expect(new Set(drawn.tasks).size).toBe(4);
        expect(drawn.shapes).toEqual([2, 2, 2, 2]);
      },
      `<attention-heads></attention-heads>${"<attention-map></attention-map>".repeat(4)}`,
    ));
});
