/** What a page is held to at every width of a screen. */
import { join } from "node:path";
import { expect } from "@jest/globals";
import type { Page } from "playwright-core";
import { ARTIFACTS } from "./harness.js";

/** Nothing runs out of the page, which is kept as artifacts/NAME.png. */
export async function fits(page: Page, name: string): Promise<void> {
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  await page.screenshot({ path: join(ARTIFACTS, `${name}.png`), fullPage: true });
}

/** The same on a phone, a laptop and a wide screen. */
export async function fitsAtEveryWidth(page: Page, nameAt: (width: number) => string): Promise<void> {
  for (const width of [390, 1280, 1920]) {
    await page.setViewportSize({ width, height: 900 });
    await fits(page, nameAt(width));
  }
}

/** The texts of `selector` with no Chinese in them, though words are. */
export async function untranslated(page: Page, selector: string): Promise<string[]> {
  const texts = await page.locator(selector).evaluateAll((all) => all.map((each) => each.textContent ?? ""));
  return texts.filter((text) => /[a-z]{4}/i.test(text) && !/\p{Script=Han}/u.test(text));
}
