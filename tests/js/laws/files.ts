/** The files a law looks at, and what it says about them. A law is a function of a root folder, so that it can be tried on a planted one. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";

export interface Violation {
  /** Relative to the root, with slashes. */
  readonly path: string;
  readonly line: number;
  readonly problem: string;
}

export type Law = (root: string) => Violation[];

const GENERATED = new Set(["node_modules", "dist", "build", ".git", "artifacts"]);

/** What git tracks or would add; in a folder that is no checkout, everything that no tool made. */
export function projectFiles(root: string): string[] {
  const listed = existsSync(join(root, ".git"))
    ? execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
        cwd: root,
        encoding: "utf8",
        maxBuffer: 2 ** 26,
      }).split("\0")
    : walk(root, "");
  return [...new Set(listed)].filter((path) => path !== "" && existsSync(join(root, path))).sort();
}

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder)).flatMap((name) => {
    if (GENERATED.has(name)) return [];
    const path = folder === "" ? name : `${folder}/${name}`;
    return statSync(join(root, path)).isDirectory() ? walk(root, path) : [path];
  });
}

export const read = (root: string, path: string): string => readFileSync(join(root, path), "utf8");

export const isText = (root: string, path: string): boolean =>
  statSync(join(root, path)).isFile() && !readFileSync(join(root, path)).includes(0);

export function filesIn(root: string, folders: readonly string[], extensions: readonly string[]): string[] {
  return projectFiles(root).filter(
    (path) => folders.some((folder) => path.startsWith(`${folder}/`)) && extensions.includes(extname(path)),
  );
}

export const lineAt = (text: string, index: number): number => text.slice(0, index).split("\n").length;

/** Every match of a pattern in a text, with its line. */
export function matches(text: string, pattern: RegExp): { found: string; line: number }[] {
  return Array.from(text.matchAll(pattern), (match) => ({ found: match[0], line: lineAt(text, match.index) }));
}

/** The text with the given ranges turned into spaces, so that positions and lines stay. */
export function blank(text: string, ranges: readonly (readonly [number, number])[]): string {
  let result = text;
  for (const [from, to] of ranges)
    result = result.slice(0, from) + result.slice(from, to).replace(/[^\n]/g, " ") + result.slice(to);
  return result;
}
