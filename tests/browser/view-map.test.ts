/** <attention-map> in Chromium: what is seen, heard and pressed is what the data say. */
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { findChromium } from "./harness.js";
import { prepare } from "./view-prepare.js";
import { causalHead, far, TOKENS, ViewStand, viridis } from "./view-stand.js";

jest.setTimeout(60_000);

const chromium = findChromium();
if (!chromium) console.warn("SKIPPED: the tests of the elements need Chromium");
const withBrowser = chromium ? describe : describe.skip;

withBrowser("<attention-map>", () => {
  let stand: ViewStand;
  beforeAll(async () => {
    stand = await ViewStand.open(chromium ?? "");
  });
  afterAll(() => stand?.close());

  const weights = causalHead(5);
  const data = { weights, tokens: TOKENS };

  test("each cell has the colour of its weight; what is masked has a colour of no weight", () =>
    stand.read(`<attention-map color-scale="viridis" scale="linear"></attention-map>`, async ({ page, complaints }) => {
      await page.evaluate(prepare, data);
      for (let query = 0; query < 5; query++)
        for (let key = 0; key < 5; key++) {
          const drawn = await page.evaluate(([i, j]) => pixel(i!, j!), [query, key]);
          const weight = weights[query]![key]!;
          if (weight > 0) expect(far(drawn, viridis(weight))).toBeLessThanOrEqual(3);
          else {
            const grey = Math.max(...drawn.slice(0, 3)) - Math.min(...drawn.slice(0, 3));
            expect(grey).toBeLessThan(16);
            expect(far(drawn, viridis(0))).toBeGreaterThan(60);
          }
        }
      expect(complaints).toEqual([]);
    }));

  test("a logarithmic scale puts a tenth of the largest weight a quarter of the way down", () =>
    stand.read(`<attention-map color-scale="viridis" scale="log"></attention-map>`, async ({ page }) => {
      await page.evaluate(prepare, { weights: [[1, 0.1, 0.01, 0.001]] });
      for (let key = 0; key < 4; key++) {
        const drawn = await page.evaluate((j) => pixel(0, j), key);
        expect(far(drawn, viridis(1 - key / 4))).toBeLessThanOrEqual(3);
      }
    }));

  test("from afar the strongest of the cells in a pixel is seen, or their mean, as asked", () =>
    stand.read(`<attention-map color-scale="viridis" scale="linear" max="1"></attention-map>`, async ({ page }) => {
      await page.evaluate(async () => {
        const length = 4000;
        const lone = new Float32Array(length * length).fill(1e-6);
        lone[1234 * length + 3001] = 1;
        const map = document.querySelector("attention-map")!;
        map.data = { data: lone, dims: [length, length] };
        await map.updated;
      });
      const yellow = () =>
        page.evaluate(() => {
          const canvas = document.querySelector("attention-map")!.shadowRoot!.querySelector("canvas")!;
          const { data, width } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
          const found: [number, number][] = [];
          for (let i = 0; i < data.length; i += 4)
            if (data[i]! > 230 && data[i + 1]! > 200 && data[i + 2]! < 80)
              found.push([(i / 4) % width, Math.floor(i / 4 / width)]);
          const box = document.querySelector("attention-map")!.drawnBox;
          return found.map(([x, y]) => [
            (x / devicePixelRatio - box.x) / box.width,
            (y / devicePixelRatio - box.y) / box.height,
          ]);
        });
      const [place] = await yellow();
      expect(place?.[0]).toBeCloseTo(3001 / 4000, 2);
      expect(place?.[1]).toBeCloseTo(1234 / 4000, 2);
      await page.evaluate(() => {
        const map = document.querySelector("attention-map")!;
        map.pool = "mean";
        return map.updated;
      });
      expect(await yellow()).toEqual([]);
    }));

  test("top-k and threshold fade the others, and the events still tell their weights", () =>
    stand.read(`<attention-map color-scale="viridis" scale="linear" top-k="1"></attention-map>`, async ({ page }) => {
      await page.evaluate(prepare, data);
      const kept = await page.evaluate(() => pixel(4, 4));
      const faded = await page.evaluate(() => pixel(4, 3));
      expect(far(kept, viridis(5 / 15))).toBeLessThanOrEqual(3);
      expect(Math.min(...faded.slice(0, 3))).toBeGreaterThan(190);
      await page.evaluate(() => {
        map.topK = 0;
        map.threshold = 0.3;
        return map.updated;
      });
      expect(far(await page.evaluate(() => pixel(4, 3)), faded)).toBeLessThanOrEqual(3);
      expect(far(await page.evaluate(() => pixel(2, 2)), viridis(0.5))).toBeLessThanOrEqual(3);
    }));

  test("the pointer tells the pair, its weight and the dot product behind it; a click keeps it", () =>
    stand.read("<attention-map></attention-map>", async ({ page }) => {
      const vectors = { data: Array.from({ length: 10 }, (_, i) => i), dims: [5, 2] };
      await page.evaluate(prepare, { ...data, q: vectors, k: vectors });
      const at = await page.evaluate(() => {
        const surface = map.shadowRoot!.querySelector(".surface")!.getBoundingClientRect();
        const box = map.drawnBox;
        return { x: surface.x + box.x + box.width * 0.5, y: surface.y + box.y + box.height * 0.9 };
      });
      await page.mouse.move(at.x, at.y);
      const [name, detail] = (await page.evaluate(() => events.at(-1)))!;
      expect(name).toBe("attention-hover");
      // q of row 4 is [8, 9], k of row 2 is [4, 5].
      expect(detail).toMatchObject({ query: 4, key: 2, weight: Math.fround(3 / 15), product: 77 });
      expect(detail?.score).toBeCloseTo(77 / Math.sqrt(2), 9);
      expect(detail?.queryToken.label).toBe("·tea");
      const readout = () => page.evaluate(() => map.shadowRoot!.querySelector(".readout")!.textContent);
      expect(await readout()).toContain("·tea4→·drink20.200 (20%)q · k = 77.000");
      await page.mouse.click(at.x, at.y);
      expect(await page.evaluate(() => [map.locked, events.at(-1)?.[0]])).toEqual([true, "attention-select"]);
      await page.mouse.move(5, 5);
      expect(await page.evaluate(() => map.cell)).toEqual({ query: 4, key: 2 });
      await page.mouse.click(at.x, at.y);
      expect(await page.evaluate(() => [map.locked, events.at(-1)?.[1]])).toEqual([false, null]);
    }));

  test("keys move the cell, lock it, zoom, and are heard", () =>
    stand.read("<attention-map></attention-map>", async ({ page }) => {
      await page.evaluate(prepare, data);
      await page.evaluate(() => map.shadowRoot!.querySelector<HTMLElement>(".surface")!.focus());
      const cell = () => page.evaluate(() => map.cell);
      const heard = () => page.evaluate(() => map.shadowRoot!.querySelector('[role="status"]')!.textContent);
      await page.keyboard.press("ArrowDown");
      expect(await cell()).toEqual({ query: 0, key: 0 });
      for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
      expect(await cell()).toEqual({ query: 2, key: 1 });
      expect(await heard()).toBe("“·drink” looks at “·We”: 0.333 (33%); rank 2 of 5");
      await page.keyboard.press("End");
      expect(await heard()).toContain("0 (masked, later in the text)");
      await page.keyboard.press("Control+Home");
      expect(await cell()).toEqual({ query: 0, key: 4 });
      await page.keyboard.press("Enter");
      expect(await page.evaluate(() => map.locked)).toBe(true);
      await page.keyboard.press("Escape");
      expect(await page.evaluate(() => map.locked)).toBe(false);
      await page.keyboard.press("Escape");
      expect(await cell()).toBeNull();
      await page.keyboard.press("+");
      expect(await page.evaluate(() => map.shadowRoot!.querySelector(".surface")!.classList.contains("zoomed"))).toBe(
        true,
      );
      await page.keyboard.press("0");
      expect(await page.evaluate(() => map.shadowRoot!.querySelector(".surface")!.classList.contains("zoomed"))).toBe(
        false,
      );
    }));

  test("the wheel zooms the map that has the focus, else it scrolls the page; dragging moves what is zoomed", () =>
    stand.read(`<attention-map></attention-map><div id="long"></div>`, async ({ page }) => {
      await page.evaluate(prepare, { weights: causalHead(200) });
      await page.evaluate(() => {
        document.querySelector<HTMLElement>("#long")!.style.height = "3000px";
      });
      const spot = await page.evaluate(() => {
        const box = map.shadowRoot!.querySelector(".surface")!.getBoundingClientRect();
        return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
      });
      const state = () =>
        page.evaluate(() => [map.shadowRoot!.querySelector(".surface")!.classList.contains("zoomed"), scrollY > 0]);
      await page.mouse.move(spot.x, spot.y);
      await page.mouse.wheel(0, 60);
      await page.waitForTimeout(200);
      expect(await state()).toEqual([false, true]);
      await page.evaluate(() => scrollTo(0, 0));
      await page.mouse.click(spot.x, spot.y);
      await page.mouse.wheel(0, -900);
      await page.waitForTimeout(200);
      expect(await state()).toEqual([true, false]);
      const under = () => page.evaluate(() => map.cell);
      await page.keyboard.press("Escape");
      await page.mouse.move(spot.x, spot.y);
      const before = await under();
      await page.mouse.down();
      await page.mouse.move(spot.x - 150, spot.y - 100, { steps: 5 });
      await page.mouse.up();
      await page.mouse.move(spot.x, spot.y);
      const after = await under();
      expect(after!.key).toBeGreaterThan(before!.key);
      expect(after!.query).toBeGreaterThan(before!.query);
    }));

  describe("by fingers", () => {
    type Finger = readonly [x: number, y: number];
    const LENGTH = 64;

    /** A tall page with a map on a phone, and the fingers that touch it. */
    const touching = (
      act: (hand: {
        /** Fingers go down, move together, and leave. */
        drag(from: readonly Finger[], to: readonly Finger[]): Promise<void>;
        tapped(at: Finger): Promise<{ query: number; key: number }>;
        zoomed(): Promise<boolean>;
        scrolled(): Promise<number>;
        middle: Finger;
      }) => Promise<void>,
    ) =>
      stand.read(
        `<attention-map></attention-map><div id="long"></div>`,
        async ({ page }) => {
          await page.evaluate(prepare, { weights: causalHead(LENGTH) });
          const middle = await page.evaluate(() => {
            document.querySelector<HTMLElement>("#long")!.style.height = "3000px";
            const box = map.shadowRoot!.querySelector(".surface")!.getBoundingClientRect();
            const { x, y, width, height } = map.drawnBox;
            return [box.x + x + width / 2, box.y + y + height / 2] as const;
          });
          const devtools = await page.context().newCDPSession(page);
          const send = (type: "touchStart" | "touchMove" | "touchEnd", fingers: readonly Finger[]) =>
            devtools.send("Input.dispatchTouchEvent", {
              type,
              touchPoints: fingers.map(([x, y], id) => ({ x, y, id })),
            });
          const STEPS = 10;
          await act({
            middle,
            async drag(from, to) {
              await send("touchStart", from);
              for (let step = 1; step <= STEPS; step++) {
                const part = (a: number, b: number) => a + ((b - a) * step) / STEPS;
                await send(
                  "touchMove",
                  from.map(([x, y], finger) => [part(x, to[finger]![0]), part(y, to[finger]![1])] as const),
                );
                await page.waitForTimeout(16);
              }
              await send("touchEnd", []);
              await page.waitForTimeout(250);
            },
            async tapped([x, y]) {
              // A tap on the cell that is locked would release it.
              await page.evaluate(() => map.point(null));
              await page.touchscreen.tap(x, y);
              const cell = await page.evaluate(() => {
                const { cell, locked } = map;
                return locked ? cell : null;
              });
              if (!cell) throw new Error("the tap has locked no cell");
              return { ...cell };
            },
            zoomed: () => page.evaluate(() => map.shadowRoot!.querySelector(".surface")!.classList.contains("zoomed")),
            scrolled: () => page.evaluate(() => scrollY),
          });
          expect(await page.evaluate(() => visualViewport!.scale)).toBe(1);
        },
        { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
      );

    test("one finger scrolls the page over a whole map, and a tap locks the cell beneath", () =>
      touching(async ({ drag, tapped, zoomed, scrolled, middle: [x, y] }) => {
        const cell = await tapped([x, y]);
        expect(cell).toEqual({ query: LENGTH / 2, key: LENGTH / 2 });
        await drag([[x, y]], [[x, y - 150]]);
        expect(await zoomed()).toBe(false);
        expect(await scrolled()).toBeGreaterThan(100);
      }));

    test.each([
      ["side by side", 1, 0],
      ["one above the other", 0, 1],
      ["aslant", 0.7, 0.7],
    ])("two fingers %s zoom around what lies between them; then one moves the map, and the page stays", (_, dx, dy) =>
      touching(async ({ drag, tapped, zoomed, scrolled, middle: [x, y] }) => {
        const fingers = (apart: number): Finger[] => [
          [x - dx * apart, y - dy * apart],
          [x + dx * apart, y + dy * apart],
        ];
        await drag(fingers(25), fingers(100));
        expect(await zoomed()).toBe(true);
        const there = await tapped([x, y]);
        expect(Math.abs(there.query - LENGTH / 2)).toBeLessThanOrEqual(1);
        expect(Math.abs(there.key - LENGTH / 2)).toBeLessThanOrEqual(1);
        await drag([[x, y]], [[x - 60, y - 40]]);
        const moved = await tapped([x - 60, y - 40]);
        // What the finger was on has gone with it.
        expect(Math.abs(moved.query - there.query)).toBeLessThanOrEqual(1);
        expect(Math.abs(moved.key - there.key)).toBeLessThanOrEqual(1);
        const here = await tapped([x, y]);
        expect(here.query).toBeGreaterThan(there.query);
        expect(here.key).toBeGreaterThan(there.key);
        await drag(fingers(100), fingers(15));
        expect(await zoomed()).toBe(false);
        expect(await scrolled()).toBe(0);
      }),
    );
  });
});
