/** The law of the two READMEs: one says what the other says. */
import { marked, type Token, type Tokens } from "marked";
import { type Law, read, type Violation } from "./files.js";

interface Outline {
  readonly headings: readonly string[];
  readonly code: readonly string[];
  /** Rows and columns of each table, items of each list. */
  readonly shapes: readonly string[];
}

export function outline(markdown: string): Outline {
  const headings: string[] = [];
  const code: string[] = [];
  const shapes: string[] = [];
  for (const token of marked.lexer(markdown) as Token[]) {
    if (token.type === "heading") headings.push("#".repeat((token as Tokens.Heading).depth));
    if (token.type === "code") code.push(`${(token as Tokens.Code).lang}\n${(token as Tokens.Code).text}`);
    if (token.type === "table") {
      const { rows, header } = token as Tokens.Table;
      shapes.push(`a table of ${rows.length} × ${header.length}`);
    }
    if (token.type === "list") shapes.push(`a list of ${(token as Tokens.List).items.length}`);
  }
  return { headings, code, shapes };
}

export const readmesAgree: Law = (root) => {
  const path = "README.zh-CN.md";
  const english = outline(read(root, "README.md"));
  const chinese = outline(read(root, path));
  const differ = (what: keyof Outline): Violation[] => {
    const length = Math.max(english[what].length, chinese[what].length);
    return Array.from({ length }, (_, i) => i)
      .filter((i) => english[what][i] !== chinese[what][i])
      .slice(0, 1)
      .map((i) => ({
        path,
        line: 1,
        problem: `${what} ${i + 1}: ${JSON.stringify(english[what][i])} in README.md, ${JSON.stringify(chinese[what][i])} here`,
      }));
  };
  return [...differ("headings"), ...differ("code"), ...differ("shapes")];
};

/** The code blocks of a language, to be run. */
export const codeBlocks = (markdown: string, language: string): string[] =>
  outline(markdown)
    .code.filter((block) => block.startsWith(`${language}\n`))
    .map((block) => block.slice(language.length + 1));
