/** The bundled models, and what their cards say of them. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { execa } from "execa";
import { createLookback, type Lookback } from "lookback";
import { loadDecoder, type Model } from "lookback/model";
import { englishProse } from "lookback/models/english-prose";
import { tangVerse } from "lookback/models/tang-verse";
import { heldOutBits } from "../../js/models/tools/held-out.mjs";
import { countLines } from "../../js/models/tools/line-lengths.mjs";
import { NGramModel } from "../../js/models/tools/ngram.mjs";
import { ROOT } from "./support/process.ts";

jest.setTimeout(300_000);

const CARDS = { "english-prose": englishProse, "tang-verse": tangVerse };

/** A figure of a card's table "Measured". */
function figure(card: string, row: string): number {
  const line = card.split("\n").find((one) => one.startsWith(`| ${row}`));
  return Number(line?.split("|")[2]?.trim().replace(/,/g, ""));
}

describe.each(Object.entries(CARDS))("%s", (name, source) => {
  const folder = join(ROOT, "js/models", name);
  const card = readFileSync(join(folder, "MODEL_CARD.md"), "utf8");
  const corpus = (part: string) => join(ROOT, "build/corpus", name, `${part}.txt`);
  let lb: Lookback;
  let model: Model;
  beforeAll(async () => {
    // The card's figures are those of this variant, which every engine has.
    lb = await createLookback({ variant: "simd" });
    model = await loadDecoder(lb, source);
  });
  afterAll(() => lb.dispose());

  test("is small, and has the parameters that its card says", () => {
    const { parameters } = model.inspect();
    expect(model.name).toBe(name);
    expect(parameters).toBe(figure(card, "parameters"));
    expect(parameters).toBeLessThanOrEqual(1_200_000);
    expect(statSync(join(folder, "model.safetensors")).size).toBeLessThanOrEqual(2_500_000);
  });

  test("writes the card's sample at its seed", async () => {
    const [, prompt, seed] = /^lookback generate \S+ "(.+)" -n 120 --temperature 0\.5 --top-k 20 --seed (\d+)$/m.exec(
      card,
    )!;
    const sample = /--seed \d+\n```\n\n```text\n([\s\S]+?)\n```/.exec(card)![1];
    const settings = { maxTokens: 120, temperature: 0.5, topK: 20, seed: Number(seed) };
    expect(`${prompt}${await model.generate(prompt!, settings).text()}`.trimEnd()).toBe(sample);
  });

  test("goes by its name in the command", async () => {
    const command = [join(ROOT, "dist/cli/lookback.js"), "inspect", name, "--json"];
    const { stdout } = await execa(process.execPath, command, { env: { NO_COLOR: "1" } });
    expect(JSON.parse(stdout).parameters).toBe(model.inspect().parameters);
  });

  test("needs fewer bits per character than the 5-gram, by its card", () => {
    expect(figure(card, "bits per character, test text")).toBeLessThan(
      figure(card, "bits per character of the 5-gram"),
    );
  });

  const measured = existsSync(corpus("test")) ? test : test.skip;
  measured("needs fewer bits than the 5-gram on a part of the test text (npm run models -- corpus makes it)", () => {
    const part = [...readFileSync(corpus("test"), "utf8")].slice(0, 8000).join("");
    const { bits, characters, skipped } = heldOutBits(model, part);
    const baseline = new NGramModel(readFileSync(corpus("train"), "utf8"), 5).bits(part, skipped);
    expect(bits).toBeLessThan(baseline);
    // The part is of one book or poet; the figure is of all.
    expect(Math.abs(bits / characters - figure(card, "bits per character, test text"))).toBeLessThan(0.4);
  });
});

test("tang-verse keeps the length of its lines, as its card says", async () => {
  const card = readFileSync(join(ROOT, "js/models/tang-verse/MODEL_CARD.md"), "utf8");
  const lb = await createLookback({ variant: "simd" });
  const { lines, shareOfFiveOrSeven } = await countLines(await loadDecoder(lb, tangVerse), { poems: 20, seed: 1 });
  lb.dispose();
  expect(lines).toBeGreaterThan(60);
  expect(shareOfFiveOrSeven).toBeGreaterThan(0.9);
  expect(figure(card, "lines of 5 or 7 characters")).toBeGreaterThan(0.9);
});
