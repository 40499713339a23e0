/** What the chapters' tests have in common. */
import type { BrowserContextOptions } from "playwright-core";
import type { Reader } from "../harness.js";

/** Opens the page at an address, acts, and expects that it complained about nothing. */
export type Reading = (
  hash: string,
  act: (reader: Reader) => Promise<void>,
  options?: BrowserContextOptions,
) => Promise<void>;

/** Switches the language as a reader does. */
export async function translated({ page }: Reader, lang: "en" | "zh"): Promise<void> {
  await page.locator(`.language label[data-value="${lang}"]`).click();
  await page.waitForFunction((wanted) => document.documentElement.lang.startsWith(wanted), lang);
}

/** Waits until a chapter is there, and long context has calculated. */
export async function opened({ page }: Reader, chapter: string): Promise<void> {
  await page.waitForSelector(`#page[data-ready="${chapter}"]`);
  if (chapter === "long-context") await page.waitForSelector(".long-context[data-done]", { timeout: 60_000 });
}
