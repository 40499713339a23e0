/** The chapter Write in Chromium: it writes what the command writes, and shows what the model computes. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { loadDecoder, type Model } from "lookback/model";
import { testNode } from "../../bindings/toolchain/nodes.mjs";
import { root } from "../../bindings/toolchain/paths.mjs";
import { gpt2Shapes, randomTensors, VOCABULARY, writeFolder } from "../js/support/model-folders.ts";
import { seriousFindings } from "./axe.js";
import { eventually, findChromium, openPage, openStand, type Reader, type Stand } from "./harness.js";
import { fitsAtEveryWidth, untranslated } from "./widths.js";

jest.setTimeout(90_000);

const chromium = findChromium();
if (!chromium)
  console.warn("SKIPPED: the browser tests need Chromium (apt-get install chromium, or LOOKBACK_CHROMIUM=path)");
const withBrowser = chromium ? describe : describe.skip;

const CONFIG = { model_type: "gpt2", vocab_size: VOCABULARY, n_embd: 32, n_head: 4, n_layer: 3, n_positions: 256 };
const PROMPT = "once upon the hill";

/** A reader of a model's file ends its request once it has what it needs; the browser counts that among the failures. */
const complaintsOf = ({ complaints }: Reader) =>
  complaints.filter((complaint) => !/\.(json|safetensors): net::ERR_ABORTED$/.test(complaint));

/** What the command prints as JSON. */
interface Told {
  readonly promptIds: readonly number[];
  readonly ids: readonly number[];
  readonly text: string;
}

withBrowser("the chapter Write", () => {
  let stand: Stand;
  let folder: string;
  let lb: Lookback;
  let model: Model;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "lookback-write-"));
    writeFolder(folder, { config: CONFIG, tensors: randomTensors(gpt2Shapes(CONFIG, "transformer."), 3) });
    lb = await createLookback();
    model = await loadDecoder(lb, folder);
    stand = await openStand(chromium ?? "");
  }, 180_000);

  afterAll(async () => {
    await stand?.close();
    lb?.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const files = () =>
    ["config.json", "tokenizer.json", "model.safetensors"].map((name) => ({
      name,
      mimeType: "application/octet-stream",
      buffer: readFileSync(join(folder, name)),
    }));

  async function load({ page }: Reader): Promise<void> {
    await page.locator('.model-choice input[type="file"]').first().setInputFiles(files());
    // Files without a folder have no name.
    await page.waitForFunction(
      () =>
        document.querySelector(".model-facts")?.textContent?.startsWith(".") &&
        document.querySelector<HTMLElement>(".run-status")?.dataset.phase === "ready",
    );
  }

  async function writing(
    parameters: Record<string, string>,
    act: (reader: Reader) => Promise<void>,
    options: object = {},
  ): Promise<void> {
    const hash = new URLSearchParams({ lang: "en", chapter: "write", prompt: PROMPT, ...parameters });
    const reader = await openPage(stand, `#${hash}`, options);
    try {
      await load(reader);
      await act(reader);
      expect(complaintsOf(reader)).toEqual([]);
    } finally {
      await reader.close();
    }
  }

  const ids = ({ page }: Reader) =>
    page.locator(".tokens .token").evaluateAll((all) => all.map((each) => Number((each as HTMLElement).dataset.id)));
  const textIs = (reader: Reader, expected: readonly number[]) =>
    eventually(async () => expect(await ids(reader)).toEqual(expected));
  const press = ({ page }: Reader, name: string) => page.getByRole("button", { name, exact: true }).click();
  /** Waits until the text has so many tokens, the prompt's and others, and nothing more is being written. */
  const hasLength = ({ page }: Reader, length: number) =>
    page.waitForFunction((wanted) => {
      const phase = document.querySelector<HTMLElement>(".run-status")?.dataset.phase;
      return phase !== "writing" && document.querySelectorAll(".tokens .token").length === wanted;
    }, length);
  const promptLength = () => model.encode(PROMPT).length;
  const looks = ({ page }: Reader) =>
    page.locator(".looks .look").evaluateAll((all) =>
      all.map((each) => ({
        key: Number((each as HTMLElement).dataset.key),
        weight: Number((each as HTMLElement).dataset.weight),
      })),
    );

  /** The command that the page names, with a model in the place of the one that it names, run with the page's variant. */
  async function inTerminal({ page }: Reader, name: string, prompt: string, place: string): Promise<Told> {
    const variant = (await page.locator(".model-facts").getAttribute("data-variant")) as "simd" | "relaxed";
    const node = testNode(variant);
    if (!node) throw new Error(`no Node.js here runs the variant ${variant}`);
    const command = (await page.locator(".terminal code").textContent()) ?? "";
    const start = `npx lookback generate ${name} "${prompt}" `;
    expect(command.slice(0, start.length)).toBe(start);
    const options = command.slice(start.length).split(" ");
    const told = execFileSync(
      node,
      [join(root, "dist/cli/lookback.js"), "generate", place, prompt, ...options, "--json"],
      { env: { ...process.env, NODE_OPTIONS: "" }, stdio: ["ignore", "pipe", "pipe"] },
    );
    return JSON.parse(told.toString()) as Told;
  }

  test("R15: the text is the one that npx lookback generate writes with the same seed and variant", () =>
    writing({ t: "0.9", k: "40", p: "0.9", seed: "7", n: "60", pace: "full" }, async (reader) => {
      const { page } = reader;
      await press(reader, "Write");
      await hasLength(reader, promptLength() + 60);
      expect(await page.locator(".terminal code").textContent()).toContain(
        "--temperature 0.9 --top-k 40 --top-p 0.9 --seed 7 --max-tokens 60",
      );
      const told = await inTerminal(reader, ".", PROMPT, folder);
      await textIs(reader, [...told.promptIds, ...told.ids]);
      await press(reader, "Edit the text");
      const whole = `${PROMPT}${told.text}`.replaceAll("\r", "\n");
      await eventually(async () => expect(await page.locator(".beginning textarea").inputValue()).toBe(whole));
    }));

  test.each([
    ["en", "english-prose", "Once upon a time", "Write"],
    ["zh", "tang-verse", "明月", "开始写"],
  ] as const)(
    "R15: in %s the package's %s writes at once, what the command writes",
    async (lang, name, prompt, write) => {
      const reader = await openPage(stand, `#lang=${lang}&chapter=write&pace=full&n=40`);
      try {
        await reader.page.waitForSelector('.run-status[data-phase="ready"]', { timeout: 60_000 });
        await press(reader, write);
        await reader.page.waitForSelector('.run-status[data-phase="ended"]');
        const told = await inTerminal(reader, name, prompt, name);
        await textIs(reader, [...told.promptIds, ...told.ids]);
        expect(complaintsOf(reader)).toEqual([]);
      } finally {
        await reader.close();
      }
    },
  );

  test("pausing and single tokens change nothing of the text: its draws go on where they were", () =>
    writing({ seed: "5", n: "24", pace: "full" }, async (reader) => {
      await press(reader, "Write");
      await hasLength(reader, promptLength() + 24);
      const whole = await ids(reader);
      await press(reader, "To the beginning");
      for (let n = 0; n < 4; n++) {
        await press(reader, "One token");
        await hasLength(reader, promptLength() + n + 1);
      }
      await textIs(reader, whole.slice(0, -20));
      await press(reader, "Write on");
      await hasLength(reader, promptLength() + 24);
      await textIs(reader, whole);
      expect(await reader.page.locator(".branches li").count()).toBe(0);
    }));

  test("every token says where the model looked before it, of all heads or one: the weights that attend() gives", () =>
    writing({ seed: "2", n: "20", pace: "full" }, async (reader) => {
      const { page } = reader;
      await press(reader, "Write");
      await hasLength(reader, promptLength() + 20);
      const all = await ids(reader);
      const { weights } = model.attend(all);
      const row = (query: number, layer: number | null, head: number | null) => {
        const maps = weights.flatMap((heads, l) =>
          heads.filter((_, h) => (layer === null || l === layer) && (head === null || h === head)),
        );
        return Array.from(
          { length: query + 1 },
          (_, key) => maps.reduce((sum, map) => sum + (map.data[query * all.length + key] ?? 0), 0) / maps.length,
        );
      };
      const check = async (token: number, layer: number | null, head: number | null) => {
        const expected = row(token - 1, layer, head);
        await eventually(async () => {
          const shown = await looks(reader);
          expect(shown).toHaveLength(6);
          for (const { key, weight } of shown) expect(weight).toBeCloseTo(expected[key] ?? Number.NaN, 4);
          expect(shown[0]?.weight).toBeCloseTo(Math.max(...expected), 4);
        });
      };
      await check(all.length - 1, null, null);
      // A token of the reader's own, too.
      await page.locator(".tokens .token").nth(7).hover();
      await check(7, null, null);
      await page.locator(".tokens .token").nth(15).click();
      await page.getByLabel("Layer").selectOption({ value: "2" });
      await page.getByLabel("Head").selectOption({ value: "1" });
      await page.mouse.move(5, 5);
      await check(15, 2, 1);
      expect(new URL(page.url()).hash).toContain("layer=2&head=1");
    }));

  test("another candidate grows a branch, and the first text can be gone back to", () =>
    writing({ seed: "3", n: "16", pace: "full" }, async (reader) => {
      const { page } = reader;
      await press(reader, "Write");
      await hasLength(reader, promptLength() + 16);
      const first = await ids(reader);
      const start = model.encode(PROMPT).length;
      await page
        .locator(".tokens .token")
        .nth(start + 4)
        .click();
      await page.locator(`.tokens .token.shown[data-at="${start + 4}"]`).waitFor();
      const candidates = page.locator(".candidate");
      const probabilities = await candidates.evaluateAll((all) =>
        all.map((each) => Number((each as HTMLElement).dataset.probability)),
      );
      expect(probabilities).toEqual([...probabilities].sort((a, b) => b - a));
      const { logits } = model.forward(first.slice(0, start + 4));
      const scaled = [...logits.data].map((logit) => Math.exp((logit - Math.max(...logits.data)) / 0.8));
      const total = scaled.reduce((sum, each) => sum + each, 0);
      expect(probabilities[0]).toBeCloseTo(1 / total, 4);
      const other = candidates.and(page.locator(":not(.own)")).first();
      const chosen = Number(await other.getAttribute("data-id"));
      await other.click();
      await textIs(reader, [...first.slice(0, start + 4), chosen]);
      await press(reader, "Write on");
      await hasLength(reader, promptLength() + 5 + 16);
      const second = await ids(reader);
      expect(second.slice(0, start + 5)).toEqual([...first.slice(0, start + 4), chosen]);
      expect(second).toHaveLength(start + 5 + 16);
      expect(await page.locator(".branches li").count()).toBe(2);
      expect(await page.locator('.branches button[aria-current="true"]').count()).toBe(1);
      await page.locator(".branches button").first().click();
      await textIs(reader, first);
      await press(reader, "Back");
      await textIs(reader, first.slice(0, -1));
    }));

  test("a changed text goes on from what is the same in it", () =>
    writing({ seed: "3", n: "8", pace: "full" }, async (reader) => {
      const { page } = reader;
      await press(reader, "Write");
      await hasLength(reader, promptLength() + 8);
      await page.locator(".beginning textarea").fill("once upon the hill and once");
      await press(reader, "Write");
      await hasLength(reader, model.encode("once upon the hill and once").length + 8);
      const prompt = model.encode("once upon the hill and once");
      const all = await ids(reader);
      expect(all.slice(0, prompt.length)).toEqual(prompt);
      expect(all).toHaveLength(prompt.length + 8);
      expect(await page.locator(".branches li").count()).toBe(2);
    }));

  test("files that are no model are an error in words, and the page goes on", async () => {
    const reader = await openPage(stand, "#lang=en&chapter=write");
    try {
      const { page } = reader;
      const input = page.locator('.model-choice input[type="file"]').first();
      await input.setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("hello") }]);
      await page.waitForSelector(".model-choice .refusal:not([hidden])");
      expect(await page.locator(".model-choice .engine-message").textContent()).toContain("config.json");
      await load(reader);
      expect(await page.locator(".model-choice .refusal").isVisible()).toBe(false);
      expect(await page.locator(".model-facts").textContent()).toContain("3 layers of 4 heads");
      expect(complaintsOf(reader)).toEqual([]);
    } finally {
      await reader.close();
    }
  });

  test("the keyboard walks through the text, keeps a token, and lets it go", () =>
    writing({ seed: "3", n: "12", pace: "full" }, async (reader) => {
      const { page } = reader;
      await press(reader, "Write");
      await hasLength(reader, promptLength() + 12);
      const last = (await ids(reader)).length - 1;
      await page.locator('.tokens .token[tabindex="0"]').focus();
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.press("Enter");
      const kept = page.locator('.tokens .token[aria-selected="true"]');
      expect(await kept.getAttribute("data-at")).toBe(String(last - 2));
      expect(await page.locator(".tokens .token.shown").getAttribute("data-at")).toBe(String(last - 2));
      await page.keyboard.press("Escape");
      await kept.waitFor({ state: "detached" });
    }));

  test("the main thread stays free while the worker writes at full speed", () =>
    writing({ seed: "4", n: "230", pace: "full" }, async (reader) => {
      const { page } = reader;
      await page.evaluate(() => {
        const tasks: number[] = [];
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) tasks.push(entry.duration);
        }).observe({ type: "longtask" });
        Object.assign(window, { tasks });
      });
      await press(reader, "Write");
      await hasLength(reader, promptLength() + 230);
      const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
      console.info(
        `Write at full speed: ${await page.locator(".run-status").textContent()}; long tasks: [${tasks}] ms`,
      );
      expect(await ids(reader)).toHaveLength(model.encode(PROMPT).length + 230);
    }));

  test.each([
    ["en", "light"],
    ["en", "dark"],
    ["zh", "light"],
    ["zh", "dark"],
  ] as const)(
    "in %s and %s axe finds nothing serious, and at no width does anything run out of the page",
    (lang, colorScheme) =>
      writing(
        { lang, seed: "3", n: "40", pace: "full" },
        async (reader) => {
          const { page } = reader;
          await page.locator(".run .primary").click();
          await hasLength(reader, promptLength() + 40);
          await page.locator(".tokens .token").nth(20).click();
          await page.locator(".candidate:not(.own)").first().click();
          await page.locator(".run .primary").click();
          await hasLength(reader, 21 + 40);
          expect(await seriousFindings(page)).toEqual([]);
          if (lang === "zh") {
            expect(
              await untranslated(page, "#chapter-write :is(h1,h3,h4,label,legend,button:not(.candidate),.hint,.lead)"),
            ).toEqual([]);
          }
          await fitsAtEveryWidth(page, (width) => `write-${width}-${colorScheme}-${lang}`);
        },
        { colorScheme },
      ),
  );
});
