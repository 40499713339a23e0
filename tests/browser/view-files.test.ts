/** <attention-map> in Chromium: what comes in and goes out as files, its table, its messages, its themes. */
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { seriousFindings } from "./axe.js";
import { findChromium } from "./harness.js";
import { prepare } from "./view-prepare.js";
import { causalHead, far, TOKENS, ViewStand, viridis } from "./view-stand.js";

jest.setTimeout(60_000);

const chromium = findChromium();
if (!chromium) console.warn("SKIPPED: the tests of the elements need Chromium");
const withBrowser = chromium ? describe : describe.skip;

withBrowser("<attention-map> and files", () => {
  let stand: ViewStand;
  beforeAll(async () => {
    stand = await ViewStand.open(chromium ?? "");
  });
  afterAll(() => stand?.close());

  const weights = causalHead(5);
  const data = { weights, tokens: TOKENS };

  test("the PNG is the canvas, pixel by pixel", () =>
    stand.read("<attention-map numbers></attention-map>", async ({ page }) => {
      await page.evaluate(prepare, data);
      const result = await page.evaluate(async () => {
        const blob = await map.toPNG({ density: devicePixelRatio });
        const picture = await createImageBitmap(blob);
        const canvas = map.shadowRoot!.querySelector("canvas")!;
        const other = document.createElement("canvas");
        [other.width, other.height] = [picture.width, picture.height];
        other.getContext("2d")!.drawImage(picture, 0, 0);
        const pixels = (from: HTMLCanvasElement) =>
          from.getContext("2d")!.getImageData(0, 0, from.width, from.height).data;
        const [a, b] = [pixels(canvas), pixels(other)];
        let different = 0;
        for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) different++;
        return { type: blob.type, sizes: [picture.width, picture.height, canvas.width, canvas.height], different };
      });
      const [width, height] = result.sizes;
      expect(result).toEqual({ type: "image/png", sizes: [width, height, width, height], different: 0 });
    }));

  test("the SVG is well-formed, has a rectangle per cell with its number, and looks like the map", () =>
    stand.read(`<attention-map color-scale="viridis" scale="linear"></attention-map>`, async ({ page }) => {
      await page.evaluate(prepare, { weights, tokens: ["<s>", "a & b", "\u0000", "“”", "שלום"] });
      const { error, cells, texts, drawn } = await page.evaluate(async () => {
        const svg = map.toSVG();
        const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
        const rects = [...parsed.querySelectorAll("rect[data-value]")];
        const image = new Image();
        image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
        await image.decode();
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [image.width, image.height];
        const context = canvas.getContext("2d")!;
        context.drawImage(image, 0, 0);
        const [, dx, dy] = /translate\(([\d.]+) ([\d.]+)\)/.exec(svg)!.map(Number);
        const number = (rect: Element, name: string) => Number(rect.getAttribute(name));
        return {
          error: parsed.querySelector("parsererror")?.textContent ?? null,
          cells: rects.map((rect) => [
            number(rect, "data-query"),
            number(rect, "data-key"),
            number(rect, "data-value"),
          ]),
          texts: [...parsed.querySelectorAll("text")].map((text) => text.textContent),
          drawn: rects.map((rect) => [
            ...context.getImageData(
              dx! + number(rect, "x") + number(rect, "width") / 2,
              dy! + number(rect, "y") + number(rect, "height") / 2,
              1,
              1,
            ).data,
          ]),
        };
      });
      expect(error).toBeNull();
      expect(cells.map(([, , value]) => Math.fround(value!))).toEqual(weights.flat().map(Math.fround));
      expect(texts).toContain("a & b");
      expect(texts).toContain("שלום");
      cells.forEach(([, , value], index) => {
        if (value! > 0) expect(far(drawn[index]!, viridis(value!))).toBeLessThanOrEqual(3);
      });
    }));

  test("a large map's SVG and HTML hold a picture in place of a million rectangles", () =>
    stand.read("<attention-map></attention-map>", async ({ page }) => {
      await page.evaluate(prepare, { weights: causalHead(300) });
      const [svg, html] = await page.evaluate(() => [map.toSVG(), map.toHTML()]);
      expect(svg).toContain("data:image/png;base64,");
      expect(svg.length).toBeLessThan(500_000);
      expect(html).toContain("<figcaption>");
    }));

  test("the table says every number in full, and large ones are shown a part at a time", () =>
    stand.read("<attention-map></attention-map>", async ({ page }) => {
      await page.evaluate(prepare, data);
      const table = page.locator("attention-map .twin");
      expect(await page.locator("attention-map .twin table").count()).toBe(0);
      await page.getByRole("button", { name: "Table" }).click();
      const values = await table
        .locator("data")
        .evaluateAll((all) => all.map((each) => Number((each as HTMLDataElement).value)));
      expect(values).toEqual(weights.flat().map(Math.fround));
      await page.evaluate(prepare, { weights: causalHead(100) });
      expect(await table.locator("caption").textContent()).toMatch(/ · Queries 0 to 31, keys 0 to 15$/);
      await page.getByRole("button", { name: "Later queries" }).press("Enter");
      expect(await table.locator("caption").textContent()).toMatch(/ · Queries 32 to 63, keys 0 to 15$/);
      expect(await table.locator("tbody tr").count()).toBe(32);
    }));

  test("layer and head are chosen in the toolbar, special tokens can be hidden", () =>
    stand.read("<attention-map></attention-map>", async ({ page }) => {
      const layer = (value: number) => ({ data: [value, 0, 0, 1 - value, value, 0, 0, 0, 1], dims: [1, 1, 3, 3] });
      const two = (a: number, b: number) => ({ data: [...layer(a).data, ...layer(b).data], dims: [1, 2, 3, 3] });
      await page.evaluate(prepare, { attentions: [two(0.25, 0.5), two(0.75, 1)], tokens: ["<s>", "a", "b"] });
      await page.getByRole("combobox", { name: "Layer" }).selectOption("1");
      expect((await page.evaluate(() => map.toCSV())).split("\r\n")[1]).toBe("<s>,0.75,0,0");
      await page.getByRole("combobox", { name: "Head" }).selectOption("mean");
      expect((await page.evaluate(() => map.toCSV())).split("\r\n")[1]).toBe("<s>,0.875,0,0");
      await page.evaluate(() => {
        map.hideSpecial = true;
        map.head = 0;
      });
      expect(await page.evaluate(() => map.toCSV())).toBe(",a,b\r\na,0.75,0\r\nb,0,1\r\n");
    }));

  test("data come from a file, or from JSON between the tags; Python's NaN is read", async () => {
    stand.serve("/attention.json", JSON.stringify({ weights: [[0.5, 0.5]], tokens: ["a", "b"] }));
    const loaded = async (body: string) => {
      let csv = "";
      await stand.read(body, async ({ page }) => {
        await page.waitForTimeout(50);
        for (let looks = 0; looks < 100 && csv === ""; looks++) {
          csv = await page.evaluate(() => {
            const map = document.querySelector("attention-map")!;
            return map.attention ? map.toCSV() : "";
          });
          await page.waitForTimeout(30);
        }
      });
      return csv;
    };
    expect(await loaded(`<attention-map src="attention.json"></attention-map>`)).toContain("b,0.5,0.5");
    const inline = `<attention-map><script type="application/json">[[1, NaN], [-Infinity, 2]]</script></attention-map>`;
    expect(await loaded(inline)).toBe(",0,1\r\n0,1,NaN\r\n1,-Infinity,2\r\n");
  });

  test("bad data are said in the element and by an event, once, and good ones take their place", () =>
    stand.read(`<attention-map></attention-map>`, async ({ page, complaints }) => {
      await page.evaluate(prepare, null);
      const shown = () =>
        page.evaluate(async () => {
          await map.updated;
          const message = map.shadowRoot!.querySelector<HTMLElement>(".message")!;
          return message.hidden ? null : message.textContent;
        });
      expect(await shown()).toBe("No attention yet");
      await page.evaluate(() => {
        (globalThis as unknown as { told: string[] }).told = [];
        map.addEventListener("error", (event) => {
          const { error, message } = event as ErrorEvent;
          (globalThis as unknown as { told: string[] }).told.push(`${error.code}: ${message}`);
        });
        map.data = { weights: [[1, 2], [3]] };
      });
      expect(await shown()).toContain("weights[1] has 1 entries where weights has 2");
      await page.setViewportSize({ width: 500, height: 700 });
      await page.waitForTimeout(100);
      const told = () => page.evaluate(() => (globalThis as unknown as { told: string[] }).told);
      expect(await told()).toHaveLength(1);
      expect((await told())[0]).toMatch(/^invalid-attention: weights\[1\]/);
      await page.evaluate(() => {
        map.data = { weights: [[0.5, 0.5]] };
      });
      expect(await shown()).toBeNull();
      await page.evaluate(() => {
        map.layer = 3;
      });
      expect(await shown()).toContain("layer 3 does not exist: there are 1");
      await page.evaluate(() => {
        map.layer = 0;
        map.setAttribute("color-scale", "rainbow");
      });
      expect(await shown()).toContain('color-scale must be one of blues, viridis, cividis; received "rainbow"');
      expect(complaints).toEqual([]);
      for (const [path, text, reason] of [
        ["/html.json", "<!doctype html><p>", "it is an HTML page, not JSON"],
        ["/broken.json", "{", "it is not JSON"],
        ["/missing.json", null, "the server answered 404"],
      ] as const) {
        if (text !== null) stand.serve(path, text);
        await page.evaluate((address) => {
          map.colorScale = "blues";
          map.src = address;
        }, path);
        await page.waitForTimeout(150);
        expect(await shown()).toContain(reason);
        expect((await told()).at(-1)).toMatch(/^attention-unreachable/);
      }
    }));

  test("steps of a generation are added as they come", () =>
    stand.read("<attention-map></attention-map>", async ({ page }) => {
      await page.evaluate(prepare, null);
      const rows = await page.evaluate(async () => {
        const step = (keys: number) => ({
          row: 0,
          text: ` w${keys}`,
          weights: {
            layers: [0],
            heads: [0],
            tensor: { data: new Float32Array(keys).fill(1 / keys), dims: [1, 1, keys] },
          },
        });
        map.appendStep(step(2));
        map.appendStep(step(3));
        await map.updated;
        return map.toCSV();
      });
      expect(rows).toBe(",0,1,·w2\r\n1,0.5,0.5,0\r\n·w2,0.333333343,0.333333343,0.333333343\r\n");
    }));

  test("the colours follow the page's scheme, the reader's, and the theme, as soon as they change", () =>
    stand.read(`<attention-map></attention-map>`, async ({ page }) => {
      await page.evaluate(prepare, data);
      const paper = async () => {
        await page.waitForTimeout(120);
        return page.evaluate(() => {
          const canvas = map.shadowRoot!.querySelector("canvas")!;
          return canvas.getContext("2d")!.getImageData(1, 1, 1, 1).data[0];
        });
      };
      expect(await paper()).toBe(255);
      await page.evaluate(() => {
        document.documentElement.style.colorScheme = "dark";
      });
      expect(await paper()).toBe(0x15);
      await page.evaluate(() => {
        map.theme = "light";
      });
      expect(await paper()).toBe(255);
      await page.evaluate(() => {
        map.theme = "auto";
        document.documentElement.style.colorScheme = "light dark";
      });
      expect(await paper()).toBe(255);
      await page.emulateMedia({ colorScheme: "dark" });
      expect(await paper()).toBe(0x15);
      await page.evaluate(() => {
        map.style.setProperty("--attention-paper", "rgb(1, 2, 3)");
      });
      expect(await paper()).toBe(1);
    }));

  test.each([
    ["light", "en", 900],
    ["dark", "zh-CN", 390],
  ] as const)("axe-core has nothing serious to say, and nothing overflows (%s, %s, %d px)", (scheme, language, width) =>
    stand.read(
      `<attention-map lang="${language}" numbers></attention-map>`,
      async ({ page, complaints }) => {
        await page.evaluate(() => {
          document.documentElement.style.colorScheme = "light dark";
          document.body.style.background = "canvas";
        });
        await page.evaluate(prepare, { weights: [[causalHead(5)], [causalHead(5)]], tokens: TOKENS });
        await page.getByRole("button", { name: language === "en" ? "Table" : "表格" }).click();
        await page.locator("attention-map summary").click();
        expect(await seriousFindings(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
        expect(complaints).toEqual([]);
      },
      { colorScheme: scheme, viewport: { width, height: 900 } },
    ),
  );
});
