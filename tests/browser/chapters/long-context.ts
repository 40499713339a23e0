/** Tests of the chapter. */
import { describe, expect, test } from "@jest/globals";
import type { Lookback } from "lookback";
import { HEADS, inputsOf, SCALE, tokensOf, WIDTH } from "../../../web-demo/src/chapters/long-context/inputs.js";
import { opened, type Reading, translated } from "./reading.js";

export function longContextTests(reading: Reading, lb: () => Lookback): void {
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
          positions === "rotary" ? lb().rotary({ data, dims }, { heads }) : { data, dims };
        const { summary } = lb().attention(
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

    test("another language keeps the reader's text and what was calculated", () =>
      reading("#lang=en&chapter=long-context&len=1024&row=700", async (reader) => {
        const { page } = reader;
        await page.locator('.text-choice label[data-value="own"]').click();
        await page.locator(".own-text textarea").fill(TEXT);
        await page.waitForSelector(`.long-context[data-done]:has(.excerpt:has-text("ship"))`, { timeout: 60_000 });
        const values = () =>
          page.locator(".long-report data").evaluateAll((all) => all.map((each) => (each as HTMLDataElement).value));
        const before = await values();
        await translated(reader, "zh");
        // The time that it took is among them: it was not calculated anew.
        expect(await values()).toEqual(before);
        expect(await page.locator(".own-text textarea").inputValue()).toBe(TEXT);
        expect(await page.locator(".own-text .hint").textContent()).toContain("读到");
        expect(await page.locator(".run-engine .engine").textContent()).toContain("引擎");
        expect(await page.locator(".text-choice input:checked").getAttribute("value")).toBe("own");
      }));

    test("too short a text is not calculated, and said so", () =>
      reading("#lang=en&chapter=long-context&len=1024", async ({ page }) => {
        await page.locator('.text-choice label[data-value="own"]').click();
        await page.locator(".own-text textarea").fill("Only five words are here");
        expect(await page.locator(".own-text .hint").textContent()).toContain("At least 16 words are needed");
      }));
  });
}
