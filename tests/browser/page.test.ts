/** The demo in Chromium: its numbers are the engine's, and everybody can use it. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Lookback, masks } from "lookback";
import { seriousFindings } from "./axe.js";
import { ARTIFACTS, findChromium, openPage, openStand, type Reader, type Stand } from "./harness.js";

jest.setTimeout(60_000);

const chromium = findChromium();
if (!chromium)
  console.warn("SKIPPED: the browser tests need Chromium (apt-get install chromium, or LOOKBACK_CHROMIUM=path)");
const withBrowser = chromium ? describe : describe.skip;

interface Matrix {
  rows: number;
  cols: number;
  data: number[];
}

/** A matrix as its table says it, in full precision. */
async function twin({ page }: Reader, chapter: string, id: string): Promise<Matrix> {
  const rows = await page
    .locator(`#chapter-${chapter} table[data-twin="${id}"] tbody tr`)
    .evaluateAll((lines) => lines.map((line) => [...line.querySelectorAll("data")].map((cell) => Number(cell.value))));
  return { rows: rows.length, cols: rows[0]?.length ?? 0, data: rows.flat() };
}

const tensor = ({ rows, cols, data }: Matrix) => ({ data: Float32Array.from(data), dims: [rows, cols] });

function transposed({ rows, cols, data }: Matrix): Matrix {
  const turned = Array.from(
    { length: rows * cols },
    (_, index) => data[(index % rows) * cols + Math.floor(index / rows)] ?? 0,
  );
  return { rows: cols, cols: rows, data: turned };
}

/** The two variants round differently, and the page's may be the other one. */
function expectClose(actual: Matrix, expected: ArrayLike<number>, tolerance = 2e-5): void {
  expect(actual.data).toHaveLength(expected.length);
  actual.data.forEach((value, index) => {
    const wanted = expected[index] ?? Number.NaN;
    if (Number.isFinite(wanted)) expect(Math.abs(value - wanted)).toBeLessThanOrEqual(tolerance);
    else expect(value).toBe(wanted);
  });
}

const chooseMask = ({ page }: Reader, choice: string) =>
  page.locator(`#chapter-mask > .mask-choice label[data-value="${choice}"]`).click();

withBrowser("the page", () => {
  let stand: Stand;
  let lb: Lookback;

  beforeAll(async () => {
    lb = await createLookback();
    stand = await openStand(chromium ?? "");
  }, 180_000);

  afterAll(async () => {
    await stand?.close();
    lb?.dispose();
  });

  async function reading(hash: string, act: (reader: Reader) => Promise<void>, options = {}): Promise<void> {
    const reader = await openPage(stand, hash, options);
    try {
      await act(reader);
      expect(reader.complaints).toEqual([]);
    } finally {
      await reader.close();
    }
  }

  test("every matrix of the causal head is what lb.attention gives for the page's Q, K and V", () =>
    reading("#lang=en", async (reader) => {
      const q = await twin(reader, "scores", "q");
      const k = transposed(await twin(reader, "scores", "kt"));
      const v = await twin(reader, "output", "v");
      expect([q.rows, q.cols]).toEqual([4, 4]);
      const run = (options: object) => lb.attention(tensor(q), tensor(k), tensor(v), { heads: 1, ...options });
      expectClose(await twin(reader, "scores", "raw"), run({ scale: 1, weights: "scores" }).weights?.data ?? []);
      expectClose(await twin(reader, "scores", "scaled"), run({ weights: "scores" }).weights?.data ?? []);
      expectClose(await twin(reader, "mask", "masked"), run({ causal: true, weights: "masked" }).weights?.data ?? []);
      const { weights, output } = run({ causal: true, weights: "softmax" });
      const shown = await twin(reader, "mask", "a");
      expectClose(shown, weights?.data ?? []);
      expectClose(await twin(reader, "output", "out"), output.data);
      expect((await twin(reader, "mask", "m")).data).toEqual([...masks.causal(4).toBias().data]);
      for (let i = 0; i < 4; i++) for (let j = i + 1; j < 4; j++) expect(shown.data[i * 4 + j]).toBe(0);
      expect(shown.data.slice(0, 4)).toEqual([1, 0, 0, 0]);
    }));

  test("the projections are X times the shown weights", () =>
    reading("#lang=en", async (reader) => {
      for (const which of ["q", "k", "v"]) {
        await reader.page.locator(`#chapter-qkv label[data-value="${which}"]`).click();
        const x = await twin(reader, "qkv", "x");
        const weight = await twin(reader, "qkv", "weight");
        const out = await twin(reader, "qkv", "out");
        const expected = Array.from({ length: out.rows * out.cols }, (_, index) => {
          const [row, col] = [Math.floor(index / out.cols), index % out.cols];
          let sum = 0;
          for (let d = 0; d < x.cols; d++)
            sum += (x.data[row * x.cols + d] ?? 0) * (weight.data[d * weight.cols + col] ?? 0);
          return sum;
        });
        expectClose(out, expected);
      }
    }));

  test("with the mask off the future leaks in, and the page says who sees what", () =>
    reading("#lang=en", async (reader) => {
      const verdict = reader.page.locator("#chapter-mask .verdict");
      expect(await verdict.getAttribute("data-tone")).toBe("good");
      await chooseMask(reader, "off");
      const a = await twin(reader, "mask", "a");
      const leaks = a.data.filter((weight, index) => index % 4 > Math.floor(index / 4) && weight > 0);
      expect(leaks).toHaveLength(6);
      expect(await verdict.getAttribute("data-tone")).toBe("bad");
      expect(await verdict.textContent()).toContain("6 weights above the diagonal are not 0");
      const percent = Math.round((a.data[2 * 4 + 3] ?? 0) * 100);
      expect(await verdict.textContent()).toContain(`“some” already sees “tea”, with ${percent}%`);
      expect((await twin(reader, "mask", "m")).data).toEqual(new Array(16).fill(0));
      const shares = await reader.page
        .locator('[data-table="cheater"] data')
        .evaluateAll((all) => all.map((each) => Number((each as HTMLDataElement).value)));
      expect(shares).toHaveLength(3);
      for (const share of shares) expect(share).toBeGreaterThan(0.99);
      await chooseMask(reader, "causal");
      const hidden = await reader.page
        .locator('[data-table="cheater"] data')
        .evaluateAll((all) => all.map((each) => Number((each as HTMLDataElement).value)));
      expect(hidden).toEqual([0, 0, 0]);
    }));

  test("R9: under the inverted mask the last word sees nothing, and gets zeros", () =>
    reading("#lang=en", async (reader) => {
      await chooseMask(reader, "inverted");
      const a = await twin(reader, "mask", "a");
      const out = await twin(reader, "output", "out");
      expect(a.data.slice(12)).toEqual([0, 0, 0, 0]);
      expect(out.data.slice(12)).toEqual([0, 0, 0, 0]);
      expect(a.data[0]).toBe(0);
      expect(await reader.page.locator("#chapter-mask .verdict").textContent()).toContain(
        "“tea” comes last, sees nothing",
      );
      expect(new URL(reader.page.url()).hash).toContain("mask=inverted");
    }));

  test("each count of heads gives that many matrices, and one that does not divide gives the engine's message (M1)", () =>
    reading("#lang=en", async (reader) => {
      const { page } = reader;
      const slider = page.locator('#chapter-heads input[type="range"]');
      const maps = page.locator('#chapter-heads canvas[data-matrix^="head-"]');
      const story = await twin(reader, "mask", "a");
      expectClose(await twin(reader, "heads", "head-1"), story.data);
      for (const heads of [1, 4, 8]) {
        await slider.fill(String(heads));
        expect(await maps.count()).toBe(heads);
        for (let head = 1; head <= heads; head++) {
          const { data } = await twin(reader, "heads", `head-${head}`);
          for (let row = 0; row < 4; row++)
            expect(data.slice(row * 4, row * 4 + 4).reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 5);
        }
        const concat = await twin(reader, "heads", "concat");
        const wo = transposed(await twin(reader, "heads", "wo"));
        const dummy = { data: new Float32Array(wo.rows), dims: [wo.rows, 1] };
        const product = lb.attention(tensor(concat), tensor(wo), dummy, { heads: 1, scale: 1, weights: "scores" });
        expectClose(await twin(reader, "heads", "y"), product.weights?.data ?? []);
      }
      await slider.fill("3");
      let message = "";
      try {
        lb.multiHeadAttention({ embedDim: 8, heads: 3 });
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toMatch(/8.*3/);
      expect(await page.locator("#chapter-heads .engine-message").textContent()).toBe(message);
      expect(await maps.first().isVisible()).toBe(false);
      await slider.press("ArrowLeft");
      expect(await maps.count()).toBe(2);
      expect(await maps.first().isVisible()).toBe(true);
    }));

  test("cross-attention looks into the second sentence, and a causal mask there is asked about (R6)", () =>
    reading("#lang=en", async (reader) => {
      const { page } = reader;
      const cross = await twin(reader, "cross", "cross");
      expect([cross.rows, cross.cols]).toEqual([4, 6]);
      for (let row = 0; row < 4; row++)
        expect(cross.data.slice(row * 6, row * 6 + 6).reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 5);
      await page.locator("#chapter-cross .field input").nth(1).fill("茶!");
      expect((await twin(reader, "cross", "cross")).cols).toBe(2);
      await page.locator('#chapter-cross input[type="checkbox"]').check();
      expect(await page.locator("#chapter-cross .engine-message").textContent()).toContain("queryOffset");
      await page.locator('#chapter-cross input[type="checkbox"]').uncheck();
      expect(await page.locator("#chapter-cross canvas").first().isVisible()).toBe(true);
    }));

  test("any text can be read: one word, many, none", () =>
    reading("#lang=en", async (reader) => {
      const { page } = reader;
      const field = page.locator("#chapter-start .field input");
      await field.fill("only");
      expect((await twin(reader, "mask", "a")).data).toEqual([1]);
      await field.fill("   ");
      expect((await twin(reader, "mask", "a")).data).toEqual([1]);
      expect(await page.locator("#chapter-start .hint").textContent()).toContain("at least one word");
      await field.fill("one two three four five six seven eight nine ten eleven twelve thirteen 十四");
      expect((await twin(reader, "mask", "a")).rows).toBe(12);
      await field.fill("<img src=x onerror=alert(1)> “quotes” 🙂");
      expect(await page.locator("img").count()).toBe(0);
      await page.locator("#chapter-start button").click();
      expect(await field.inputValue()).toBe("I want some tea");
    }));

  test("the keyboard walks over the cells, and what is spelled out agrees with the cell", () =>
    reading("#lang=en", async (reader) => {
      const { page } = reader;
      const canvas = page.locator('#chapter-scores canvas[data-matrix="raw"]');
      const inspector = page.locator("#chapter-scores .inspector");
      await canvas.focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      const raw = await twin(reader, "scores", "raw");
      const spelled = await inspector
        .locator(".product")
        .evaluateAll((products) =>
          products.map((product) => [...product.querySelectorAll("data")].map((each) => Number(each.value))),
        );
      expect(spelled).toHaveLength(4);
      const sum = spelled.reduce((total, [a = 0, b = 0]) => total + a * b, 0);
      const result = Number(await inspector.locator("data.result").getAttribute("value"));
      expect(result).toBe(raw.data[1 * 4 + 2]);
      expect(Math.abs(sum - result)).toBeLessThan(1e-5);
      expect(await inspector.locator(".sentence").textContent()).toBe(
        "How well the query of “want” fits the key of “some”.",
      );
      await expect(
        page.locator("#live").filter({ hasText: "“want”" }).waitFor({ state: "attached" }),
      ).resolves.toBeUndefined();
      expect(await canvas.evaluate((element) => getComputedStyle(element).outlineStyle)).toBe("solid");
      await page.keyboard.press("Enter");
      expect(await page.locator("#chapter-scores figure.is-locked").count()).toBe(1);
      await page.keyboard.press("Escape");
      expect(await page.locator("#chapter-scores figure.is-locked").count()).toBe(0);
    }));

  test("the pointer explains a cell, and a click keeps it", () =>
    reading("#lang=en", async (reader) => {
      const { page } = reader;
      const canvas = page.locator('#chapter-output canvas[data-matrix="out"]');
      await canvas.scrollIntoViewIfNeeded();
      const box = await canvas.boundingBox();
      if (!box) throw new Error("the matrix is not there");
      const result = page.locator("#chapter-output data.result");
      const out = await twin(reader, "output", "out");
      const last = out.data.at(-1);
      const x = box.x + box.width - 30;
      const y = box.y + box.height - 20;
      await page.mouse.move(x, y);
      expect(Number(await result.getAttribute("value"))).toBe(last);
      await page.mouse.click(x, y);
      await page.mouse.move(10, 300);
      expect(Number(await result.getAttribute("value"))).toBe(last);
      await page.mouse.click(x, y);
      await page.mouse.move(10, 300);
      expect(Number(await result.getAttribute("value"))).not.toBe(last);
    }));

  test("the language switch changes everything, and stays in the address", () =>
    reading("#lang=en", async (reader) => {
      const { page } = reader;
      await page.locator('.language label[data-value="zh"]').click();
      expect(await page.evaluate(() => document.documentElement.lang)).toBe("zh-CN");
      expect(await page.title()).toContain("注意力");
      expect(new URL(page.url()).hash).toBe("#lang=zh");
      expect(await page.locator("#chapter-start .field input").inputValue()).toBe("我想喝茶");
      const english = await page.evaluate(() => {
        const labels = [...document.querySelectorAll("[aria-label]")].map(
          (each) => each.getAttribute("aria-label") ?? "",
        );
        const texts = [...document.querySelectorAll("h1,h2,h3,legend,figcaption,caption,.hint,.lock,.quiet")].map(
          (each) => each.textContent ?? "",
        );
        return [...labels, ...texts].filter((text) => text.trim() && !/\p{Script=Han}/u.test(text));
      });
      expect(english).toEqual([]);
      await page.reload();
      await page.waitForSelector("#page[data-ready]");
      expect(await page.locator("h1").textContent()).toBe("只许回头看的注意力");
    }));

  test("a Chinese reader gets Chinese without asking", () =>
    reading("", async ({ page }) => expect(await page.evaluate(() => document.documentElement.lang)).toBe("zh-CN"), {
      locale: "zh-CN",
    }));

  test("light, dark and automatic: the choice is kept", () =>
    reading(
      "#lang=en",
      async ({ page }) => {
        const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
        expect(await theme()).toBe("dark");
        await page.locator("button.theme").click();
        expect(await theme()).toBe("light");
        await page.reload();
        await page.waitForSelector("#page[data-ready]");
        expect(await theme()).toBe("light");
      },
      { colorScheme: "dark" },
    ));

  test("the page says which engine it runs", () =>
    reading("#lang=en", async ({ page }) => {
      const variant = await page.locator(".engine").getAttribute("data-variant");
      expect(["simd", "relaxed"]).toContain(variant);
      expect(await page.locator('[data-fact="variant"]').textContent()).toBe(variant);
      expect(await page.locator('[data-fact="objects"]').textContent()).toBe("0");
    }));

  test("when the wasm cannot be had, the page says so and can try again", async () => {
    const context = await stand.browser.newContext({ locale: "en-US" });
    try {
      const page = await context.newPage();
      await page.route("**/*.wasm", (route) => route.abort());
      await page.goto(`${stand.url}#lang=en`);
      await page.waitForSelector(".failure");
      expect((await page.locator(".failure .engine-message").textContent())?.length).toBeGreaterThan(10);
      await page.unroute("**/*.wasm");
      await page.locator(".failure button").click();
      await page.waitForSelector("#page[data-ready]");
      expect(await page.locator("h1").textContent()).toContain("Attention");
    } finally {
      await context.close();
    }
  });

  test.each([
    ["#lang=en&mask=off", "light"],
    ["#lang=en&mask=off", "dark"],
    ["#lang=zh&heads=3", "light"],
    ["#lang=zh&heads=3", "dark"],
  ] as const)("axe finds nothing serious at %s in %s", (hash, colorScheme) =>
    reading(hash, async ({ page }) => expect(await seriousFindings(page)).toEqual([]), { colorScheme }),
  );

  test.each([390, 1280, 1920])(
    "at %i px nothing runs out of the page; screenshots",
    async (width) => {
      for (const lang of ["en", "zh"])
        for (const colorScheme of ["light", "dark"] as const)
          await reading(
            `#lang=${lang}&mask=off&heads=4`,
            async ({ page }) => {
              const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
              expect(excess).toBeLessThanOrEqual(0);
              const blank = await page
                .locator("canvas")
                .evaluateAll(
                  (all) =>
                    all.filter(
                      (each) => (each as HTMLCanvasElement).width < 40 || each.getBoundingClientRect().width < 40,
                    ).length,
                );
              expect(blank).toBe(0);
              await page.screenshot({ path: join(ARTIFACTS, `${width}-${colorScheme}-${lang}.png`), fullPage: true });
            },
            { colorScheme, viewport: { width, height: width < 500 ? 844 : 900 } },
          );
    },
    60_000,
  );
});
