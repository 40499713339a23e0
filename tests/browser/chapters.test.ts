/** The chapters beside the article in Chromium: what they show is the engine's, their choices are in the address, everybody can use them. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Lookback, masks } from "lookback";
import { HEADS, inputsOf, SCALE, tokensOf, WIDTH } from "../../web-demo/src/chapters/long-context/inputs.js";
import { seriousFindings } from "./axe.js";
import { ARTIFACTS, findChromium, openPage, openStand, type Reader, type Stand } from "./harness.js";

jest.setTimeout(120_000);

const chromium = findChromium();
if (!chromium)
  console.warn("SKIPPED: the browser tests need Chromium (apt-get install chromium, or LOOKBACK_CHROMIUM=path)");
const withBrowser = chromium ? describe : describe.skip;

const CHAPTERS = ["mask-lab", "long-context", "own-weights"];

/** Waits until a chapter is there, and long context has calculated. */
async function opened({ page }: Reader, chapter: string): Promise<void> {
  await page.waitForSelector(`#page[data-ready="${chapter}"]`);
  if (chapter === "long-context") await page.waitForSelector(".long-context[data-done]", { timeout: 60_000 });
}

withBrowser("the chapters", () => {
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

  describe("the list of chapters", () => {
    test("a chapter is loaded when it is first read, and back and forward lead from one to the other", () =>
      reading("#lang=en&mask=off", async (reader) => {
        const { page } = reader;
        const loaded = () =>
          page.evaluate(() => performance.getEntriesByType("resource").some(({ name }) => /mask-lab.*\.js/.test(name)));
        expect(await loaded()).toBe(false);
        await page.locator('.chapters a[data-chapter="mask-lab"]').click();
        await opened(reader, "mask-lab");
        expect(await loaded()).toBe(true);
        expect(new URL(page.url()).hash).toBe("#lang=en&chapter=mask-lab");
        expect(await page.title()).toBe("Mask lab · lookback");
        expect(await page.locator(".chapters a[aria-current]").textContent()).toBe("Mask lab");
        await page.goBack();
        await opened(reader, "article");
        expect(new URL(page.url()).hash).toBe("#lang=en&mask=off");
        expect(await page.locator("#chapter-mask > .mask-choice input:checked").getAttribute("value")).toBe("off");
        await page.goForward();
        await opened(reader, "mask-lab");
        // The article is as it was left.
        await page.locator('.chapters a[data-chapter="article"]').first().click();
        await opened(reader, "article");
        expect(new URL(page.url()).hash).toBe("#lang=en&mask=off");
      }));

    test("language and theme are switched in any chapter, and what was made there stays", () =>
      reading(
        "#lang=en&chapter=mask-lab&n=6&m=and.prefix.2",
        async (reader) => {
          const { page } = reader;
          await page.locator('.language label[data-value="zh"]').click();
          await page.waitForSelector('h1:text("画出谁可以看谁")');
          expect(new URL(page.url()).hash).toBe("#lang=zh&chapter=mask-lab&n=6&m=and.prefix.2");
          expect(await page.locator(".mask-cell").count()).toBe(36);
          await page.locator("button.theme").click();
          expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
        },
        { colorScheme: "dark" },
      ));

    test("a chapter that cannot be loaded says so in its place, and the others are read on", async () => {
      const context = await stand.browser.newContext({ locale: "en-US" });
      try {
        const page = await context.newPage();
        await page.route(/own-weights.*\.js/, (route) => route.abort());
        await page.goto(`${stand.url}#lang=en&chapter=own-weights`);
        await page.waitForSelector(".failure");
        expect(await page.locator(".failure h1").textContent()).toBe("This chapter cannot be shown");
        await page.locator('.chapters a[data-chapter="mask-lab"]').click();
        await page.waitForSelector('#page[data-ready="mask-lab"]');
        expect(await page.locator(".failure").count()).toBe(0);
      } finally {
        await context.close();
      }
    });

    test("an address of no chapter shows the first one", () =>
      reading("#lang=en&chapter=nowhere", async (reader) => opened(reader, "article")));
  });

  describe("mask lab", () => {
    const bits = ({ page }: Reader) =>
      page
        .locator(".mask-cell")
        .evaluateAll((cells) => cells.map((cell) => Number(cell.getAttribute("aria-selected") === "true")));
    /** What the code beside the picture gives when it is run. */
    const evaluated = async ({ page }: Reader): Promise<number[]> => {
      const code = (await page.locator(".mask-code code").textContent()) ?? "";
      expect(code.startsWith('import { masks } from "lookback";\n')).toBe(true);
      const body = code.replace(/^import .*\n/, "");
      const mask = new Function("masks", `${body}\nreturn mask;`)(masks) as { data: Uint8Array };
      return [...mask.data];
    };
    const weightsOf = ({ page }: Reader) =>
      page.locator("attention-map").evaluate((map) => {
        const { attention } = map as unknown as { attention: { matrix(layer: number, head: number): Float32Array } };
        return [...attention.matrix(0, 0)];
      });

    test.each([
      ["and.causal", masks.causal(8)],
      ["and.window.2.1", masks.window(8, { left: 2, right: 1 })],
      ["and.not.causal", masks.causal(8).not()],
      ["and.prefix.3", masks.prefix(8, 3)],
      ["and.documents.3.2&m=and.causal", masks.documents([0, 0, 0, 1, 1, 2, 2, 2]).and(masks.causal(8))],
      ["and.padding.5&m=or.dilated.3", masks.padding([5], 8).or(masks.dilated(8, { step: 3 }))],
    ] as const)("the picture of %s is the mask, and its code gives the same", (terms, expected) =>
      reading(`#lang=en&chapter=mask-lab&n=8&m=${terms}`, async (reader) => {
        const wanted = expected.data.length === 64 ? [...expected.data] : [];
        const shown = await bits(reader);
        if (wanted.length > 0) expect(shown).toEqual(wanted);
        expect(await evaluated(reader)).toEqual(shown);
        const weights = await weightsOf(reader);
        shown.forEach((bit, place) => {
          if (bit === 0) expect(weights[place]).toBe(0);
        });
      }),
    );

    test("drawn by pointer and keyboard; what each row sees, blind rows, the diagnosis and the code follow", () =>
      reading("#lang=en&chapter=mask-lab&n=6&m=and.nothing", async (reader) => {
        const { page } = reader;
        const cell = (row: number, key: number) => page.locator(".mask-cell").nth(row * 6 + key);
        expect(await page.locator(".mask-blind").textContent()).toBe("6 rows see nothing at all: 0–5.");
        const from = await cell(0, 0).boundingBox();
        const to = await cell(0, 3).boundingBox();
        if (!from || !to) throw new Error("the grid is not there");
        await page.mouse.move(from.x + 5, from.y + 5);
        await page.mouse.down();
        await page.mouse.move(to.x + 5, to.y + 5, { steps: 12 });
        await page.mouse.up();
        await cell(2, 0).focus();
        await page.keyboard.press(" ");
        await page.keyboard.press("Shift+ArrowRight");
        await page.keyboard.press("Shift+ArrowDown");
        const expected = new Array<number>(36).fill(0);
        for (const place of [0, 1, 2, 3, 12, 13, 19]) expected[place] = 1;
        expect(await bits(reader)).toEqual(expected);
        expect(await evaluated(reader)).toEqual(expected);
        expect(await page.locator(".mask-blind").textContent()).toBe("3 rows see nothing at all: 1, 4–5.");
        const rows = await page.locator(".mask-rows tbody tr").allTextContents();
        expect(rows[0]).toBe("0The40–3");
        expect(rows[4]).toBe("4the0nothing");
        expect(await page.locator('[data-code="rows-see-nothing"]').count()).toBe(1);
        expect(await page.locator('[data-code="future-leak"], [data-code="mask-inverted"]').count()).toBeGreaterThan(0);
        expect(new URL(page.url()).hash).toContain("on=");
        await page.reload();
        await page.waitForSelector("#page[data-ready]");
        expect(await bits(reader)).toEqual(expected);
        await page.locator(".mask-side .hint button").click();
        expect((await bits(reader)).every((bit) => bit === 0)).toBe(true);
      }));

    test("composed with the controls, and copied", () =>
      reading(
        "#lang=en&chapter=mask-lab",
        async (reader) => {
          const { page } = reader;
          await page.locator('[data-preset="inverted"]').click();
          expect(await bits(reader)).toEqual([...masks.causal(8).not().data]);
          expect(await page.locator('[data-code="mask-inverted"]').count()).toBe(1);
          await page.locator(".term-not input").uncheck();
          await page.locator(".composer > button").click();
          await page.locator('.term-row:nth-child(2) input[type="number"]').first().fill("1");
          await page.locator('.term-row:nth-child(2) input[type="number"]').first().press("Enter");
          expect(await bits(reader)).toEqual([...masks.causal(8).and(masks.window(8, { left: 1, right: 0 })).data]);
          await page.locator(".copy").click();
          await page.waitForSelector('.copy:text("Copied")');
          const copied = await page.evaluate(() => navigator.clipboard.readText());
          expect(copied).toBe(await page.locator(".mask-code code").textContent());
        },
        { permissions: ["clipboard-read", "clipboard-write"] },
      ));
  });

  describe("long context", () => {
    const SENTENCES = Array.from({ length: 120 }, (_, i) => `The ${i % 7} ship sails to port ${i % 11}; who sees it?`);
    const TEXT = SENTENCES.join(" ");
    const LENGTH = 1024;

    test.each(["none", "rotary", "alibi"])("measures and heaviest keys are what Node.js calculates (%s)", (positions) =>
      reading(`#lang=en&chapter=long-context&len=1024&win=256&pos=${positions}&row=700`, async (reader) => {
        const { page } = reader;
        await page.locator('.text-choice label[data-value="own"]').click();
        await page.locator(".own-text textarea").fill(TEXT);
        await page.waitForSelector(`.long-context[data-done]:has(.excerpt:has-text("ship"))`, { timeout: 60_000 });
        const inputs = inputsOf(tokensOf(TEXT, LENGTH));
        const heads = HEADS.length;
        const dims = [LENGTH, heads * WIDTH];
        const turned = (data: Float32Array) =>
          positions === "rotary" ? lb.rotary({ data, dims }, { heads }) : { data, dims };
        const { summary } = lb.attention(
          turned(inputs.q),
          turned(inputs.k),
          { data: inputs.v, dims: [LENGTH, heads] },
          {
            heads,
            causal: true,
            scale: SCALE,
            alibi: positions === "alibi",
            window: { left: 255 },
            summary: { topK: 8, entropy: true, distance: true, map: [128, 128] },
          },
        );
        const mean = ({ data }: { data: Float32Array }, head: number) =>
          data.subarray(head * LENGTH, (head + 1) * LENGTH).reduce((sum, value) => sum + value, 0) / LENGTH;
        const values = (selector: string) =>
          page.locator(selector).evaluateAll((all) => all.map((each) => Number((each as HTMLDataElement).value)));
        const close = (actual: number[], expected: number[], tolerance: number) => {
          expect(actual).toHaveLength(expected.length);
          actual.forEach((value, index) => {
            expect(Math.abs(value - (expected[index] ?? Number.NaN))).toBeLessThanOrEqual(tolerance);
          });
        };
        const every = HEADS.map((_, head) => head);
        close(
          await values('[data-measure="entropy"]'),
          every.map((head) => mean(summary.entropy, head)),
          1e-3,
        );
        close(
          await values('[data-measure="distance"]'),
          every.map((head) => mean(summary.distance, head)),
          1e-2,
        );
        for (const head of every) {
          const from = (head * LENGTH + 700) * 8;
          const selector = `.looks [data-head="${HEADS[head]}"]`;
          const seen = summary.topK.weights.data.subarray(from, from + 8).filter((weight) => weight > 0);
          close(await values(`${selector} .look-weight`), [...seen], 1e-4);
        }
        const maps = await page.locator(".long-maps attention-map").evaluateAll((all) =>
          all.map((each) => {
            const { attention } = each as unknown as { attention: { matrix(l: number, h: number): Float32Array } };
            return [...attention.matrix(0, 0)];
          }),
        );
        maps.forEach((map, head) => {
          close(map, [...summary.map.data.subarray(head * 128 * 128, (head + 1) * 128 * 128)], 1e-3);
        });
        expect(await values('[data-fact="weights"] data')).toEqual([heads * LENGTH * LENGTH * 4]);
        expect(await values('[data-fact="pairs"] data')).toEqual([heads * ((256 * 257) / 2 + (LENGTH - 256) * 256)]);
      }),
    );

    test("positions and window change the pictures, and are in the address", () =>
      reading("#lang=en&chapter=long-context&len=1024", async (reader) => {
        const { page } = reader;
        await opened(reader, "long-context");
        const map = () =>
          page.locator('.long-maps [data-head="place"] attention-map').evaluate((each) => {
            const { attention } = each as unknown as { attention: { matrix(l: number, h: number): Float32Array } };
            return [...attention.matrix(0, 0)];
          });
        const choose = async (group: string, value: string, address: string) => {
          await page.locator(`.${group} label[data-value="${value}"]`).click();
          await page.waitForSelector(`.long-context[data-done="${address}"]`, { timeout: 60_000 });
        };
        const plain = await map();
        await choose("position-choice", "alibi", "len=1024&pos=alibi");
        const alibi = await map();
        // The last row, its first cell: far away. Nearness counts with ALiBi only.
        expect(alibi[127 * 128] ?? 1).toBeLessThan((plain[127 * 128] ?? 0) / 2);
        await choose("position-choice", "rotary", "len=1024&pos=rotary");
        expect(await map()).not.toEqual(plain);
        await choose("window-choice", "256", "len=1024&pos=rotary&win=256");
        expect((await map())[127 * 128]).toBe(0);
        expect(new URL(page.url()).hash).toBe("#lang=en&chapter=long-context&len=1024&pos=rotary&win=256");
      }));

    test("the engine says whether it has threads, and why not; a run can be cancelled and begun anew", () =>
      reading("#lang=en&chapter=long-context&len=8192", async (reader) => {
        const { page } = reader;
        await page.waitForSelector(".long-context progress:not([hidden])");
        await page.locator("button.cancel").click();
        await page.waitForSelector('.run-status:text("Cancelled")');
        expect(await page.locator(".long-report").isHidden()).toBe(true);
        await page.locator("button.run").click();
        await opened(reader, "long-context");
        const line = page.locator(".run-engine .engine");
        const isolated = await page.evaluate(() => crossOriginIsolated);
        expect(isolated).toBe(true);
        const threads = Number(await line.getAttribute("data-threads"));
        if (threads === 1) expect(await line.getAttribute("data-reason")).toMatch(/\w/);
        else expect(threads).toBeGreaterThan(1);
      }));

    test("too short a text is not calculated, and said so", () =>
      reading("#lang=en&chapter=long-context&len=1024", async ({ page }) => {
        await page.locator('.text-choice label[data-value="own"]').click();
        await page.locator(".own-text textarea").fill("Only five words are here");
        expect(await page.locator(".own-text .hint").textContent()).toContain("At least 16 words are needed");
      }));
  });

  describe("your own weights", () => {
    const matrixOf = ({ page }: Reader) =>
      page.locator("attention-map").evaluate((map) => {
        const { attention, layer, head } = map as unknown as {
          attention: {
            matrix(layer: number, head: number | "mean"): Float32Array;
            queryTokens: { label: string }[];
          };
          layer: number;
          head: number | "mean";
        };
        return { data: [...attention.matrix(layer, head)], tokens: attention.queryTokens.map(({ label }) => label) };
      });

    test.each([
      ["JSON", '{"tokens": ["a", "b"], "weights": [[[1, 0], [0.25, 0.75]]]}'],
      [
        "transformers.js",
        '{"tokens": ["a", "b"], "attentions": [{"dims": [1, 1, 2, 2], "data": {"0": 1, "1": 0, "2": 0.25, "3": 0.75}}]}',
      ],
      ["BertViz", '{"attn": [[[[1, 0], [0.25, 0.75]]]], "left_text": ["a", "b"], "right_text": ["a", "b"]}'],
      ["CSV", ",a,b\na,1,0\nb,0.25,0.75"],
    ])("%s is read and shown", (_, text) =>
      reading("#lang=en&chapter=own-weights", async (reader) => {
        const { page } = reader;
        await page.locator(".drop-zone textarea").fill(text);
        await page.waitForSelector('.own-shape:has-text("2 queries × 2 keys")');
        expect(await matrixOf(reader)).toEqual({ data: [1, 0, 0.25, 0.75], tokens: ["a", "b"] });
        expect(await page.locator(".own-result .hint").textContent()).toBe(
          "Rows of this head sum to between 1.000 and 1.000.",
        );
      }),
    );

    test("a dropped .npy file, with tokens from the field", () =>
      reading("#lang=en&chapter=own-weights", async (reader) => {
        const { page } = reader;
        const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2), }".padEnd(117, " ");
        const bytes = Buffer.concat([
          Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 118, 0]),
          Buffer.from(`${header}\n`),
          Buffer.from(new Float32Array([1, 0, 0.25, 0.75]).buffer),
        ]);
        await page
          .locator('.own-weights input[type="file"]')
          .setInputFiles({ name: "heads.npy", mimeType: "application/octet-stream", buffer: bytes });
        await page.waitForSelector('.own-shape:has-text("NumPy array · 1 layer × 1 head, 2 queries × 2 keys")');
        await page.locator(".own-tokens input").fill("left right");
        await page.waitForFunction(() => {
          const map = document.querySelector("attention-map") as unknown as {
            attention: { queryTokens: { label: string }[] } | null;
          };
          return map.attention?.queryTokens[1]?.label === "right";
        });
        expect(await matrixOf(reader)).toEqual({ data: [1, 0, 0.25, 0.75], tokens: ["left", "right"] });
      }));

    test.each([
      ['{"weights": [[1, 0], [0.5]]}', "refused"],
      ['{"weights": [[1, 0], [0.5, 0.5]]', "json"],
      ['{"logits": [1, 2]}', "no-weights"],
      ["1,0\n0.5,x", "not-a-number"],
      ["1,0\n0.5", "ragged"],
    ])("what cannot be read is said in words, with an example: %s", (text, code) =>
      reading("#lang=zh&chapter=own-weights", async ({ page }) => {
        await page.locator(".drop-zone textarea").fill(text);
        await page.waitForSelector(`.own-weights .refusal[data-code="${code}"]`);
        expect(await page.locator(".own-weights .refusal p").nth(1).textContent()).toMatch(/\p{Script=Han}/u);
        expect(await page.locator(".own-weights .refusal pre").textContent()).toContain('"weights"');
        expect(await page.locator(".own-result").isHidden()).toBe(true);
      }),
    );

    test("layer and head are in the address", () =>
      reading("#lang=en&chapter=own-weights&layer=1&head=3", async (reader) => {
        const { page } = reader;
        await opened(reader, "own-weights");
        const text = await page.locator(".drop-zone textarea").inputValue();
        const { weights } = JSON.parse(text) as { weights: number[][][][] };
        const { data } = await matrixOf(reader);
        expect(data).toEqual([...Float32Array.from((weights[1]?.[3] ?? []).flat())]);
      }));
  });

  describe.each(CHAPTERS)("everybody can use %s", (chapter) => {
    test.each(["light", "dark"] as const)("axe finds nothing serious in %s", (colorScheme) =>
      reading(
        `#lang=${colorScheme === "dark" ? "zh" : "en"}&chapter=${chapter}&len=1024`,
        async (reader) => {
          await opened(reader, chapter);
          expect(await seriousFindings(reader.page)).toEqual([]);
        },
        { colorScheme },
      ),
    );

    test.each([390, 1280, 1920])("at %i px nothing runs out of the page; screenshots", async (width) => {
      for (const [lang, colorScheme] of [
        ["en", "light"],
        ["zh", "dark"],
      ] as const)
        await reading(
          `#lang=${lang}&chapter=${chapter}&len=1024`,
          async (reader) => {
            await opened(reader, chapter);
            const { page } = reader;
            const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
            expect(excess).toBeLessThanOrEqual(0);
            await page.screenshot({
              path: join(ARTIFACTS, `${chapter}-${width}-${colorScheme}-${lang}.png`),
              fullPage: true,
            });
          },
          { colorScheme, viewport: { width, height: width < 500 ? 844 : 900 } },
        );
    });
  });
});
