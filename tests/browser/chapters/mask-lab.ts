/** Tests of the chapter. */
import { describe, expect, test } from "@jest/globals";
import { masks } from "lookback";
import type { Reader } from "../harness.js";
import { type Reading, translated } from "./reading.js";

export function maskLabTests(reading: Reading): void {
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
        expect(new URL(page.url()).hash).toContain("on=");
        await page.reload();
        await page.waitForSelector("#page[data-ready]");
        expect(await bits(reader)).toEqual(expected);
        await page.locator(".mask-drawn button").click();
        expect((await bits(reader)).every((bit) => bit === 0)).toBe(true);
      }));

    test("another language keeps what is drawn and what is open", () =>
      reading("#lang=en&chapter=mask-lab&n=6", async (reader) => {
        const { page } = reader;
        await page.locator(".mask-cell").nth(3).click();
        await page.locator(".mask-rows summary").click();
        await page.locator("attention-map").evaluate((map) => map.setAttribute("scale", "log"));
        const before = await bits(reader);
        await translated(reader, "zh");
        expect(await page.locator(".mask-lab h1").textContent()).toBe("画出谁可以看谁");
        expect(await bits(reader)).toEqual(before);
        expect(before[3]).toBe(1);
        expect(await page.locator(".mask-drawn").textContent()).toContain("手绘了 1 格");
        expect(await page.locator(".mask-rows").getAttribute("open")).not.toBeNull();
        expect(await page.locator("attention-map").getAttribute("scale")).toBe("log");
        await page.locator(".mask-drawn button").click();
        expect((await bits(reader))[3]).toBe(0);
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
}
