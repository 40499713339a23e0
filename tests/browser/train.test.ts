/** The chapter Train in Chromium: its numbers are those of the command, and a model that saw the answers is found out. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { testNode } from "../../bindings/toolchain/nodes.mjs";
import { root } from "../../bindings/toolchain/paths.mjs";
import { seriousFindings } from "./axe.js";
import { eventually, findChromium, openPage, openStand, type Reader, type Stand } from "./harness.js";
import { fitsAtEveryWidth, untranslated } from "./widths.js";

jest.setTimeout(240_000);

const chromium = findChromium();
if (!chromium)
  console.warn("SKIPPED: the browser tests need Chromium (apt-get install chromium, or LOOKBACK_CHROMIUM=path)");
const withBrowser = chromium ? describe : describe.skip;

/** Letters without any order: nobody can tell the next one, unless he sees it. */
function unpredictable(length: number): string {
  let state = 1;
  return Array.from({ length }, () => {
    state = (state * 16807) % 2147483647;
    return "abcdefgh"[(state >> 8) % 8];
  }).join("");
}

withBrowser("the chapter Train", () => {
  let stand: Stand;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "lookback-train-"));
    stand = await openStand(chromium ?? "");
  }, 180_000);

  afterAll(async () => {
    await stand?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function training(
    parameters: Record<string, string>,
    act: (reader: Reader) => Promise<void>,
    options: object = {},
  ): Promise<void> {
    const hash = new URLSearchParams({ lang: "en", chapter: "train", ...parameters });
    const reader = await openPage(stand, `#${hash}`, options);
    try {
      await act(reader);
      expect(reader.complaints).toEqual([]);
    } finally {
      await reader.close();
    }
  }

  async function train({ page }: Reader, phase = "ended"): Promise<void> {
    await page.locator(".run .primary").click();
    await page.waitForSelector(`.run-status[data-phase="${phase}"]`, { timeout: 220_000 });
  }

  /** The chart's table: step, and what each run had. */
  const losses = ({ page }: Reader, run: string) =>
    page
      .locator(".chart tbody tr")
      .evaluateAll(
        (rows, which) =>
          rows.map((row) => [
            Number(row.querySelector("th")?.textContent),
            ...[...row.querySelectorAll("data")]
              .filter((cell) => cell.dataset.run === which)
              .map(({ value }) => Number(value)),
          ]),
        run,
      );

  test("R15: the losses are those of npx lookback train with the same text, seed and variant, number by number", () =>
    training({ size: "tiny", heads: "2", steps: "20", seed: "3", leak: "no" }, async (reader) => {
      const { page } = reader;
      const text = "Once upon a time there was a hill, and upon the hill a house.\n".repeat(12);
      await page.locator(".corpus textarea").fill(text);
      await train(reader);
      const variant = (await page.locator(".run").getAttribute("data-variant")) as "simd" | "relaxed";
      const node = testNode(variant);
      if (!node) throw new Error(`no Node.js here runs the variant ${variant}`);
      const command = (await page.locator(".terminal code").textContent()) ?? "";
      expect(command).toContain("--layers 2 --heads 2 --embed 48 --context 24");
      const corpus = join(folder, "corpus.txt");
      writeFileSync(corpus, text);
      const out = join(folder, "model");
      const options = command.replace("npx lookback train corpus.txt --out model ", "").split(" ");
      execFileSync(
        node,
        [join(root, "dist/cli/lookback.js"), "train", corpus, "--out", out, ...options, "--variant", variant, "--json"],
        { env: { ...process.env, NODE_OPTIONS: "" }, stdio: ["ignore", "pipe", "pipe"] },
      );
      const curve = readFileSync(join(out, "loss.csv"), "utf8").trim().split("\n").slice(1);
      expect(curve).toHaveLength(20);
      expect(await losses(reader, "masked")).toEqual(curve.map((line) => line.split(",").map(Number)));
    }));

  test("without the mask the loss falls far below, and the honest test tells; both are shown, with what they write and how they look", () =>
    training({ size: "tiny", heads: "2", steps: "160" }, async (reader) => {
      const { page } = reader;
      await page.locator(".corpus textarea").fill(unpredictable(6000));
      await train(reader);
      const [masked, leaking] = [(await losses(reader, "masked")).at(-1), (await losses(reader, "leaking")).at(-1)];
      // Nothing can be known of the next letter: log 8 nats are the best there is.
      expect(masked?.[1]).toBeGreaterThan(0.9 * Math.log(8));
      expect(leaking?.[1]).toBeLessThan((masked?.[1] ?? 0) / 3);
      expect(leaking?.[2]).toBeGreaterThan(1.2 * (masked?.[2] ?? Number.POSITIVE_INFINITY));
      expect(await page.locator(".verdict").getAttribute("data-tone")).toBe("bad");
      expect(await page.locator(".sample").count()).toBe(2);
      expect(await page.locator(".masked .sample").textContent()).toMatch(/^[a-h]{140,}$/);
      // Whoever learnt to copy may write what no text held: the sign for unknown characters.
      expect(await page.locator(".leaking .sample").textContent()).toMatch(/^[a-h\ufffd]{140,}$/u);
      expect(await page.locator(".model-card .thumbnail").count()).toBe(2 * 2 * 2);
      const seen = await page.locator(".model-card attention-heads").evaluateAll((all) =>
        all.map((each) => {
          const { attention } = each as unknown as { attention: { matrix(layer: number, head: number): Float32Array } };
          const matrix = attention.matrix(1, 1);
          const length = Math.sqrt(matrix.length);
          return Array.from(
            { length },
            (_, row) => matrix.subarray(row * length, (row + 1) * length).filter((weight) => weight > 0).length,
          );
        }),
      );
      // Both are shown as they write: with the mask.
      for (const rows of seen) expect(rows).toEqual(Array.from({ length: 24 }, (_, row) => row + 1));
      const newest = await page.locator(".masked .sample").getAttribute("data-step");
      expect(newest).toBe("160");
      await page.locator('.snapshot input[type="range"]').press("Home");
      await page.waitForSelector('.masked .sample[data-step="0"]');
      await page.locator(".masked .thumbnail").last().click();
      await page.waitForSelector('.masked h4:text-is("Layer 2, head 2, after step 0")');
      const heads = (name: string) =>
        page.locator(`.masked ${name}`).evaluate((each) => {
          const { layer, head } = each as unknown as { layer: number; head: number };
          return [layer, head];
        });
      expect(await heads("attention-map")).toEqual([1, 1]);
      expect(await heads("attention-heads")).toEqual([1, 1]);
    }));

  test("it can be stopped at once, trained anew with other heads, and the run before stays to compare with", () =>
    training({ size: "tiny", steps: "2000", leak: "no" }, async (reader) => {
      const { page } = reader;
      await page.locator(".run .primary").click();
      await page.waitForSelector(".legend-row.masked data:not([value=''])");
      await page.locator(".run .primary").click();
      await page.waitForSelector('.run-status[data-phase="stopped"]');
      expect(await page.locator(".run-status").textContent()).toMatch(/^Stopped after step \d+/);
      await page.locator('.training-settings input[type="range"]').fill("3");
      await page.locator(".run .primary").click();
      await page.waitForFunction(
        () =>
          document.querySelector(".masked attention-heads")?.shadowRoot?.querySelectorAll(".thumbnail").length === 16,
      );
      expect(await page.locator(".legend-row.before b").textContent()).toBe("before: 4 heads");
      expect(new URL(page.url()).hash).toContain("heads=8");
      await page.locator(".run .primary").click();
      await page.waitForSelector('.run-status[data-phase="stopped"]');
    }));

  test("a text that is too short is said to be, and the trainer's refusal is shown as it is", () =>
    training({ size: "tiny", steps: "5", leak: "no" }, async (reader) => {
      const { page } = reader;
      await page.locator(".corpus textarea").fill("short");
      expect(await page.locator(".corpus .hint.warning").textContent()).toContain("Too short");
      await eventually(async () => expect(await page.locator(".run .primary").isDisabled()).toBe(true));
      await page.locator(".corpus .quiet").last().click();
      const text = page.locator(".corpus textarea");
      await eventually(async () => expect(await text.inputValue()).toContain("Call me Ishmael"));
    }));

  test("R15: on two processors the runs take turns, on more they calculate at once; the numbers are the same, and both can be stopped", () =>
    training({ size: "tiny", steps: "12" }, async (reader) => {
      const { page } = reader;
      const told: unknown[] = [];
      for (const processors of [2, 8]) {
        await page.evaluate((value) => {
          Object.defineProperty(navigator, "hardwareConcurrency", { value, configurable: true });
        }, processors);
        await page.getByLabel("Steps").fill("5000");
        await page.locator(".run .primary").click();
        await page.waitForSelector(".leaking .sample[data-step]:not([data-step=''])");
        const locks = () =>
          page.evaluate(async () => {
            const { held = [], pending = [] } = await navigator.locks.query();
            return [...held, ...pending].filter(({ name }) => name?.startsWith("train ")).length;
          });
        const counts = [];
        for (let look = 0; look < 20; look++) counts.push(await locks());
        expect(Math.max(...counts) > 0).toBe(processors === 2);
        await page.locator(".run .primary").click();
        await page.waitForSelector('.run-status[data-phase="stopped"]');
        expect(await locks()).toBe(0);
        await page.getByLabel("Steps").fill("12");
        await train(reader);
        told.push([await losses(reader, "masked"), await losses(reader, "leaking")]);
      }
      expect(told[1]).toEqual(told[0]);
    }));

  test("the main thread stays free while two models learn", () =>
    training({ size: "tiny", steps: "60" }, async (reader) => {
      const { page } = reader;
      await page.evaluate(() => {
        const tasks: number[] = [];
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) tasks.push(Math.round(entry.duration));
        }).observe({ type: "longtask" });
        Object.assign(window, { tasks });
      });
      const begun = performance.now();
      await train(reader);
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
      console.info(`Train: 60 steps of two models in ${seconds} s; long tasks: [${tasks}] ms`);
      expect((await losses(reader, "masked")).length).toBe(20);
    }));

  test.each([
    ["en", "light"],
    ["en", "dark"],
    ["zh", "light"],
    ["zh", "dark"],
  ] as const)(
    "in %s and %s axe finds nothing serious, and at no width does anything run out of the page",
    (lang, colorScheme) =>
      training(
        { lang, size: "tiny", steps: "6" },
        async (reader) => {
          const { page } = reader;
          await train(reader);
          await page.locator(".masked .thumbnail").nth(1).click();
          expect(await seriousFindings(page)).toEqual([]);
          if (lang === "zh") {
            expect(
              await untranslated(
                page,
                "#chapter-train :is(h1,h3,h4,label,legend,button,figcaption,.hint,.lead,.verdict,.run-status)",
              ),
            ).toEqual([]);
          }
          await fitsAtEveryWidth(page, (width) => `train-${width}-${colorScheme}-${lang}`);
        },
        { colorScheme },
      ),
  );
});
