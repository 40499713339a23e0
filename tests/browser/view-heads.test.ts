/** <attention-heads> and <attention-text> in every engine: what they show is what they were given, for eyes, hands and ears. */
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { seriousIn } from "./axe.js";
import type { Engine, Launcher, Tab } from "./driver.js";
import { chromiumLauncher } from "./engine-chromium.js";
import { firefoxLauncher } from "./engine-firefox.js";
import { webKitLauncher } from "./engine-webkit.js";
import { type Server, serveDemo } from "./harness.js";
import { causalWeights, type examples, WORDS } from "./view-data.mjs";

jest.setTimeout(90_000);

interface Heads extends HTMLElement {
  data: unknown;
  readonly amounts: Float32Array | null;
  readonly chosen: readonly number[];
  readonly updated: Promise<void>;
  toSVG(): string;
  toPNG(): Promise<Blob>;
  toCSV(): string;
  toHTML(): string;
}

interface Page {
  add(name: string, data: unknown, attributes?: Record<string, string>): Promise<Heads>;
  examples: typeof examples;
}

const LENGTH = WORDS.length;

/** A row of the test's own data. */
const row = (layer: number, head: number, query: number): number[] => [
  ...causalWeights(2, 4, LENGTH)[layer]!.data.subarray(
    (head * LENGTH + query) * LENGTH,
    (head * LENGTH + query + 1) * LENGTH,
  ),
];

const sumOf = (rows: readonly number[][]): number[] =>
  rows.reduce((sum, each) => sum.map((value, i) => value + (each[i] ?? 0)));

function theElements({ launch }: Launcher, server: () => Server): void {
  let engine: Engine;
  let tab: Tab;
  beforeAll(async () => {
    engine = await launch();
  });
  afterAll(() => engine?.close());

  async function drawn(
    elements: readonly (readonly [name: string, data: string | null, attributes?: Record<string, string>])[],
    act: () => Promise<void>,
    language = "en",
  ): Promise<void> {
    tab = await engine.open({ width: 1000, height: 900 });
    try {
      await tab.goto(`${server().url}tests/view.html`);
      await tab.wait(() => document.documentElement.dataset.ready === "");
      await tab.evaluate(
        async (list, lang) => {
          document.documentElement.lang = lang;
          const { add } = globalThis as unknown as Page;
          for (const [name, data, attributes] of list) await add(name, data, attributes);
        },
        elements,
        language,
      );
      await act();
      expect(await tab.complaints()).toEqual([]);
    } finally {
      await tab.close();
    }
  }

  const amounts = (selector: string) =>
    tab.evaluate((path) => [...(document.querySelector<Heads>(path)?.amounts ?? [])], selector);
  const closeTo = (actual: readonly number[], expected: readonly number[]) => {
    expect(actual).toHaveLength(expected.length);
    actual.forEach((value, i) => {
      expect(value).toBeCloseTo(expected[i] ?? Number.NaN, 5);
    });
  };
  const attribute = (selector: string, name: string) =>
    tab.evaluate((path, wanted) => document.querySelector(path)?.getAttribute(wanted) ?? null, selector, name);
  /** Of an element's shadow. */
  const texts = (selector: string, inside: string) =>
    tab.evaluate(
      (path, part) =>
        [...(document.querySelector(path)?.shadowRoot?.querySelectorAll(part) ?? [])].map(
          (each) => each.textContent ?? "",
        ),
      selector,
      inside,
    );
  const tile = (head: number) => `attention-heads>>>.tile:nth-of-type(${head + 1})`;
  const query = (place: number) => `attention-heads>>>[data-query="${place}"]`;
  const token = (place: number, element = "attention-text") => `${element}>>>[data-token="${place}"]`;

  test("every layer and head has its picture: its strongest weight is the strongest colour, the future is masked", () =>
    drawn([["attention-heads", "story"]], async () => {
      await tab.wait(
        () =>
          !document.querySelector("attention-heads")?.shadowRoot?.querySelector(".overview")?.hasAttribute("aria-busy"),
      );
      const colours = await tab.evaluate((length) => {
        const { shadowRoot } = document.querySelector("attention-heads")!;
        return [...shadowRoot!.querySelectorAll(".overview canvas")].flatMap((picture, layer) => {
          const canvas = picture as HTMLCanvasElement;
          const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
          const lies = canvas.getBoundingClientRect();
          return [...shadowRoot!.querySelectorAll(".thumbnail")].slice(4 * layer, 4 * layer + 4).map((cell) => {
            const { left, top, width, height } = cell.getBoundingClientRect();
            const [x, y] = [left - lies.left, top - lies.top];
            const factor = canvas.width / lies.width;
            const colour = (row: number, column: number) => {
              const across = Math.floor((x + ((column + 0.5) / length) * width) * factor);
              const down = Math.floor((y + ((row + 0.5) / length) * height) * factor);
              const at = 4 * (down * canvas.width + across);
              return [...data.subarray(at, at + 3)].join(" ");
            };
            return {
              inside: x >= 0 && y === 0 && x + width <= lies.width && height === lies.height,
              colours: Array.from({ length: length ** 2 }, (_, i) => colour(Math.floor(i / length), i % length)),
            };
          });
        });
      }, LENGTH);
      expect(colours).toHaveLength(8);
      const masked = colours[0]!.colours[1];
      colours.forEach(({ inside, colours: shown }, index) => {
        expect(inside).toBe(true);
        const numbers = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((each) => row(Math.floor(index / 4), index % 4, each));
        numbers.forEach((value, place) => {
          expect(shown[place] === masked).toBe(value === 0);
        });
        const strongest = shown[numbers.indexOf(Math.max(...numbers))];
        numbers.forEach((value, place) => {
          if (value < 0.99 * Math.max(...numbers)) expect(shown[place]).not.toBe(strongest);
        });
      });
      expect(await attribute("attention-heads", "head")).toBeNull();
    }));

  test("tiles: a click turns a head off or on, a double click leaves it alone; the heads that are on are averaged", () =>
    drawn([["attention-heads", "story"]], async () => {
      await tab.click(query(5));
      const mean = (heads: readonly number[]) =>
        sumOf(heads.map((head) => row(0, head, 5))).map((value) => value / heads.length);
      closeTo(await amounts("attention-heads"), mean([0, 1, 2, 3]));
      await tab.click(tile(1));
      expect(await attribute("attention-heads", "head")).toBe("0,2,3");
      closeTo(await amounts("attention-heads"), mean([0, 2, 3]));
      await tab.click(tile(2), undefined, 2);
      expect(await attribute("attention-heads", "head")).toBe("2");
      closeTo(await amounts("attention-heads"), row(0, 2, 5));
      await tab.click(tile(2), undefined, 2);
      expect(await attribute("attention-heads", "head")).toBe("mean");
    }));

  test("several chosen tokens are added up, a second click lets one go, Escape all; the overview chooses by keys", () =>
    drawn([["attention-heads", "story", { head: "1" }]], async () => {
      await tab.click(query(2));
      await tab.click(query(6));
      closeTo(await amounts("attention-heads"), sumOf([row(0, 1, 2), row(0, 1, 6)]));
      await tab.click(query(2));
      closeTo(await amounts("attention-heads"), row(0, 1, 6));
      const told = await texts("attention-heads", ".keys .amount");
      expect(told).toHaveLength(7);
      await tab.press("Escape");
      expect(await amounts("attention-heads")).toEqual([]);
      await tab.evaluate(() =>
        document
          .querySelector("attention-heads")
          ?.shadowRoot?.querySelector<HTMLElement>('.thumbnail[tabindex="0"]')
          ?.focus(),
      );
      await tab.press("ArrowDown", "ArrowRight", "Enter");
      expect([await attribute("attention-heads", "layer"), await attribute("attention-heads", "head")]).toEqual([
        "1",
        "2",
      ]);
    }));

  test("the text: the chosen token's looks are tinted, linked and told; keys walk on, Enter holds, Escape releases", () =>
    drawn([["attention-text", "story", { head: "2", "top-k": "2" }]], async () => {
      const tints = () =>
        tab.evaluate(() =>
          [
            ...(document.querySelector("attention-text")?.shadowRoot?.querySelectorAll<HTMLElement>(".token") ?? []),
          ].map(({ style, classList }) => (classList.contains("masked") ? "masked" : style.backgroundColor)),
        );
      expect(new Set(await tints())).toEqual(new Set([""]));
      await tab.hover(token(5));
      closeTo(await amounts("attention-text"), row(0, 2, 5));
      const shown = await tints();
      const numbers = row(0, 2, 5);
      expect(shown.map((tint) => tint === "masked")).toEqual(numbers.map((value) => value === 0));
      expect(shown[numbers.indexOf(Math.max(...numbers))]).not.toBe(
        shown[numbers.indexOf(Math.min(...numbers.slice(0, 6)))],
      );
      expect(await texts("attention-text", ".links path")).toHaveLength(2);
      await tab.click(token(3));
      await tab.hover(token(6));
      closeTo(await amounts("attention-text"), row(0, 2, 3));
      await tab.press("Escape", "Home", "ArrowRight", "ArrowRight", "Enter");
      expect(await tab.evaluate(() => document.querySelector<Heads>("attention-text")?.chosen)).toEqual([2]);
      expect((await texts("attention-text", '[role="status"]')).join()).toMatch(/^“cat” looks at “(The|cat|<s>)” \d/);
      await tab.evaluate(() => document.querySelector("attention-text")?.setAttribute("threshold", "0.4"));
      await tab.press("End");
      closeTo(await amounts("attention-text"), row(0, 2, 2));
      const strong = row(0, 2, 2).filter((value, key) => value >= 0.4 && key !== 2);
      expect(await texts("attention-text", ".links path")).toHaveLength(strong.length);
    }));

  test("a text can be asked the other way, and two texts both ways", () =>
    drawn(
      [
        ["attention-text", "story", { direction: "to", id: "to" }],
        ["attention-text", "translation", { id: "two" }],
      ],
      async () => {
        await tab.click(token(1, "#to"));
        closeTo(
          await amounts("#to"),
          [0, 1, 2, 3, 4, 5, 6, 7].map((each) => row(0, 0, each)[1] ?? 0),
        );
        const side = (place: number, which: number) => `#two>>>.side:nth-child(${which}) [data-token="${place}"]`;
        await tab.click(side(1, 1));
        closeTo(await amounts("#two"), [0, 0.25, 0.75]);
        await tab.click(side(2, 2));
        closeTo(await amounts("#two"), [0.1, 0.75]);
      },
    ));

  test("Hebrew runs and is walked from right to left; a character in several tokens is told by its parts", () =>
    drawn(
      [
        ["attention-text", "hebrew", { id: "hebrew" }],
        ["attention-text", "japanese", { id: "japanese" }],
      ],
      async () => {
        const lefts = await tab.evaluate(() =>
          [...(document.querySelector("#hebrew")?.shadowRoot?.querySelectorAll(".token") ?? [])].map(
            (each) => each.getBoundingClientRect().left,
          ),
        );
        expect(lefts).toEqual([...lefts].sort((a, b) => b - a));
        await tab.click(token(1, "#hebrew"));
        await tab.press("Escape", "Home", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowRight", "Enter");
        expect(await tab.evaluate(() => document.querySelector<Heads>("#hebrew")?.chosen)).toEqual([2]);
        expect(await texts("#japanese", ".token")).toEqual(["日 1∕2", "日 2∕2", "本", "is"]);
      },
    ));

  test("elements that show one text take its data and follow each other's head and pointer, without end", () =>
    drawn(
      [
        ["attention-text", null, { for: "leader", id: "text" }],
        ["attention-heads", "story", { id: "leader" }],
        ["attention-map", null, { for: "leader", id: "map" }],
      ],
      async () => {
        await tab.wait(() => document.querySelector("#map")?.shadowRoot?.querySelector(".surface") !== null);
        await tab.evaluate(() => {
          const heard: string[] = [];
          for (const name of ["attention-hover", "attention-select", "attention-head"])
            document.addEventListener(name, (event) => heard.push(`${name} ${(event.target as Element).id}`));
          (globalThis as unknown as { heard: string[] }).heard = heard;
        });
        await tab.click("#leader>>>.tile:nth-of-type(4)", undefined, 2);
        expect([await attribute("#text", "head"), await attribute("#map", "head")]).toEqual(["3", "3"]);
        await tab.click(token(4, "#text"));
        closeTo(await amounts("#leader"), row(0, 3, 4));
        const cell = await tab.evaluate(
          () => (document.querySelector("#map") as unknown as { cell: { query: number; key: number } }).cell,
        );
        const favourite = row(0, 3, 4).indexOf(Math.max(...row(0, 3, 4)));
        expect(cell).toEqual({ query: 4, key: favourite });
        const heard = await tab.evaluate(() => (globalThis as unknown as { heard: string[] }).heard);
        expect(heard.filter((each) => each.endsWith("map"))).toEqual([]);
        expect(heard).toContain("attention-head leader");
        expect(heard).toContain("attention-select text");
        await tab.evaluate(() => {
          const { examples: given } = globalThis as unknown as Page;
          const leader = document.querySelector<Heads>("#leader");
          if (leader) leader.data = given.hebrew?.();
        });
        await tab.wait(() => document.querySelector("#text")?.shadowRoot?.querySelectorAll(".token").length === 5);
      },
    ));

  test("what is saved is what is seen: SVG that parses, a PNG with the strongest tint, CSV with every number, HTML", () =>
    drawn(
      [
        ["attention-heads", "story", { id: "heads", head: "1" }],
        ["attention-text", "story", { id: "text", head: "1" }],
      ],
      async () => {
        await tab.click(query(6).replace("attention-heads", "#heads"));
        await tab.click(token(6, "#text"));
        const saved = await tab.evaluate(async () => {
          const results = [];
          for (const id of ["#heads", "#text"]) {
            const element = document.querySelector<Heads>(id)!;
            const svg = new DOMParser().parseFromString(element.toSVG(), "image/svg+xml");
            const bitmap = await createImageBitmap(await element.toPNG());
            const canvas = document.createElement("canvas");
            canvas.width = bitmap.width;
            canvas.height = bitmap.height;
            const context = canvas.getContext("2d")!;
            context.drawImage(bitmap, 0, 0);
            const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
            const pixels = new Set(new Uint32Array(data.buffer));
            const shown = [...svg.querySelectorAll("rect[fill], path[stroke]")].map((each) =>
              each.getAttribute("fill"),
            );
            const frames = [...svg.querySelectorAll('rect[fill-opacity="0"]')];
            const colourOf = (css: string) => {
              const [red = 0, green = 0, blue = 0] = (css.match(/[\d.]+/g) ?? []).map(Number);
              return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
            };
            const tint = [...(element.shadowRoot?.querySelectorAll<HTMLElement>(".token") ?? [])].map(
              ({ style }) => style.backgroundColor,
            );
            results.push({
              root: svg.documentElement.localName,
              broken: svg.querySelector("parsererror")?.textContent ?? "",
              texts: [...svg.querySelectorAll("text")].map((each) => each.textContent),
              curves: svg.querySelectorAll("path").length,
              images: svg.querySelectorAll("image").length,
              frames: frames.length,
              unseen: frames.filter((frame) => !pixels.has(colourOf(frame.getAttribute("stroke") ?? ""))).length,
              width: Number(svg.documentElement.getAttribute("width")) * 2 - bitmap.width,
              colours: pixels.size,
              tinted: tint.filter((colour) => colour !== "" && !shown.includes(colour)).length,
              csv: element.toCSV(),
            });
          }
          return { results, html: document.querySelector<Heads>("#text")?.toHTML() ?? "" };
        });
        for (const each of saved.results) {
          expect([each.root, each.broken, each.tinted]).toEqual(["svg", "", 0]);
          expect(Math.abs(each.width)).toBeLessThan(2);
          expect(each.colours).toBeGreaterThan(20);
          const lines = each.csv
            .trim()
            .split("\r\n")
            .map((line) => line.split(","));
          expect(lines).toHaveLength(LENGTH + 1);
          closeTo(lines[7]!.slice(1).map(Number), row(0, 1, 6));
        }
        const [heads, text] = saved.results;
        expect([heads?.images, heads?.curves]).toEqual([2, 7]);
        expect([heads?.frames, heads?.unseen]).toEqual([8, 0]);
        expect(text?.texts).toEqual(["<s>", "The", "cat", "sat", "on", "the", "mat", "."]);
        expect(saved.html).toContain("mat</span>");
        expect(saved.html.match(/<span style="background:/g)).toHaveLength(7);
      },
    ));

  test.each([
    ["en", "light"],
    ["zh-CN", "dark"],
  ])("axe finds nothing serious in %s, %s; screenshots", (language, theme) =>
    drawn(
      [
        ["attention-heads", "story", { theme, id: "heads" }],
        ["attention-text", "story", { theme, id: "text", head: "2" }],
        ["attention-text", "translation", { theme, id: "two" }],
        ["attention-text", "hebrew", { theme, id: "hebrew" }],
      ],
      async () => {
        if (theme === "dark") await tab.evaluate(() => document.body.style.setProperty("background", "#15171c"));
        await tab.click("#heads>>>[data-query='4']");
        await tab.click(token(6, "#text"));
        await tab.click(token(3, "#hebrew"));
        await tab.click("#two>>>[data-token='1']");
        expect(await seriousIn(tab)).toEqual([]);
        const english = await tab.evaluate(() =>
          [...document.querySelectorAll("attention-heads, attention-text")].flatMap((element) =>
            [...(element.shadowRoot?.querySelectorAll("[aria-label], [aria-description]") ?? [])]
              .map((each) => each.getAttribute("aria-description") ?? each.getAttribute("aria-label") ?? "")
              .filter((text) => !/\p{Script=Han}/u.test(text)),
          ),
        );
        if (language === "zh-CN") expect(english).toEqual([]);
        await tab.screenshot(`${engine.name}-view-${language}-${theme}`);
      },
      language,
    ),
  );
}

describe("<attention-heads> and <attention-text>", () => {
  let server: Server;
  beforeAll(async () => {
    server = await serveDemo();
  }, 180_000);
  afterAll(() => server?.close());

  for (const launcher of [chromiumLauncher, firefoxLauncher, webKitLauncher]) {
    const missing = launcher.missing();
    if (missing) console.warn(`SKIPPED: these tests need ${missing}`);
    (missing ? describe.skip : describe)(launcher.name, () => theElements(launcher, () => server));
  }
});
