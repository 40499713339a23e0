/** Accessibility rules of axe-core, run inside the page. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import type { Tab } from "./driver.js";

interface Report {
  violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
}

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const run = () => (globalThis as unknown as { axe: { run(): Promise<Report> } }).axe.run();

function serious({ violations }: Report): string[] {
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
}

export async function seriousFindings(page: Page): Promise<string[]> {
  await page.evaluate(SOURCE);
  return serious(await page.evaluate(run));
}

/** The same in any engine. */
export async function seriousIn(tab: Tab): Promise<string[]> {
  await tab.evaluate((source) => {
    const script = document.createElement("script");
    script.textContent = source;
    document.head.append(script);
  }, SOURCE);
  return serious(await tab.evaluate(run));
}
