/** Tests of the chapter. */
import { describe, expect, test } from "@jest/globals";
import type { Reader } from "../harness.js";
import { opened, type Reading, translated } from "./reading.js";

export function ownWeightsTests(reading: Reading): void {
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
        expect(await page.locator(".own-result .hint").textContent()).toBe("Each row of this head sums to 1.000.");
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

    test("another language keeps what was pasted, right or wrong, and the head; an example is translated", () =>
      reading("#lang=en&chapter=own-weights", async (reader) => {
        const { page } = reader;
        await translated(reader, "zh");
        await page.waitForFunction(() =>
          document.querySelector<HTMLTextAreaElement>(".drop-zone textarea")?.value.includes("动"),
        );
        const area = page.locator(".drop-zone textarea");
        const text = '{"tokens": ["a", "b"], "weights": [[[[1, 0], [0, 1]], [[1, 0], [0.25, 0.75]]]]}';
        await area.fill(text);
        await page.waitForSelector('.own-shape:has-text("2 个查询")');
        await page.locator("attention-heads .thumbnail").nth(1).click();
        expect(page.url()).toContain("head=1");
        await translated(reader, "en");
        await page.waitForSelector('.own-shape:has-text("2 queries")');
        expect(await area.inputValue()).toBe(text);
        expect((await matrixOf(reader)).data).toEqual([1, 0, 0.25, 0.75]);
        await area.fill("1,0\n0.5,x");
        await page.waitForSelector('.own-weights .refusal[data-code="not-a-number"]');
        await translated(reader, "zh");
        await page.waitForSelector('.own-weights .refusal p:has-text("不是数")');
        expect(await area.inputValue()).toBe("1,0\n0.5,x");
      }));

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
}
