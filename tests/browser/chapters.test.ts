/** The chapters beside the article in Chromium: what they show is the engine's, their choices are in the address, everybody can use them. */
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { seriousFindings } from "./axe.js";
import { longContextTests } from "./chapters/long-context.js";
import { maskLabTests } from "./chapters/mask-lab.js";
import { ownWeightsTests } from "./chapters/own-weights.js";
import { opened, type Reading } from "./chapters/reading.js";
import { findChromium, openPage, openStand, type Stand } from "./harness.js";
import { fits } from "./widths.js";

jest.setTimeout(120_000);

const chromium = findChromium();
if (!chromium)
  console.warn("SKIPPED: the browser tests need Chromium (apt-get install chromium, or LOOKBACK_CHROMIUM=path)");
const withBrowser = chromium ? describe : describe.skip;

const CHAPTERS = ["mask-lab", "long-context", "own-weights"];

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

  const reading: Reading = async (hash, act, options = {}) => {
    const reader = await openPage(stand, hash, options);
    try {
      await act(reader);
      expect(reader.complaints).toEqual([]);
    } finally {
      await reader.close();
    }
  };

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

  maskLabTests(reading);
  longContextTests(reading, () => lb);
  ownWeightsTests(reading);

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
            await fits(reader.page, `${chapter}-${width}-${colorScheme}-${lang}`);
          },
          { colorScheme, viewport: { width, height: width < 500 ? 844 : 900 } },
        );
    });
  });
});
