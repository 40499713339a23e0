/** Accessibility rules of axe-core, run inside the page. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

interface Report {
  violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
}

const SOURCE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export async function seriousFindings(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(SOURCE, "utf8"));
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<Report> } };
    return (await axe.run()).violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
  });
}
