/** The laws of the TypeScript side: who touches wasm memory, who imports what, and what is thrown. */
import { posix } from "node:path";
import { parse } from "@babel/parser";
import { filesIn, type Law, projectFiles, read, type Violation } from "./files.js";

const JS = [".ts", ".tsx", ".mts", ".js", ".mjs", ".jsx"];
const HEAP = "js/src/heap.ts";
/** Declares what the generated module offers; it is types only. */
const MODULE_TYPES = "js/src/module.ts";
/** The two entries hand the glue of their environment over to createLookback. */
const PLATFORMS = ["js/src/node.ts", "js/src/web.ts"];
/** What it throws is caught by the loader, which says it in a LookbackError. */
const READERS = "js/src/platform.ts";
const BUILT_IN_ERRORS = new Set(["Error", "TypeError", "RangeError", "SyntaxError", "EvalError", "AggregateError"]);

interface Node {
  readonly type: string;
  readonly loc?: { readonly start: { readonly line: number } };
  readonly [key: string]: unknown;
}

interface Import {
  readonly target: string;
  readonly line: number;
  /** Types are gone at run time: no code is shared. */
  readonly typeOnly: boolean;
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

function visit(
  node: Node,
  see: (node: Node, ancestors: readonly Node[]) => void,
  ancestors: readonly Node[] = [],
): void {
  see(node, ancestors);
  const inner = [...ancestors, node];
  for (const [key, value] of Object.entries(node)) {
    if (key === "loc" || key.endsWith("Comments") || key === "comments" || key === "tokens") continue;
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, see, inner);
  }
}

function parseScript(root: string, path: string): Node {
  const plugins = [/\.m?tsx?$/.test(path) ? "typescript" : "jsx", "explicitResourceManagement"] as const;
  const options = { sourceType: "module", createImportExpressions: true, plugins: [...plugins] } as const;
  return parse(read(root, path), { ...options, plugins: [...plugins] }).program as unknown as Node;
}

const lineOf = (node: Node): number => node.loc?.start.line ?? 1;

/** The text of a string or template; what is inserted counts as *. */
function textOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === "StringLiteral") return node.value as string;
  if (node.type !== "TemplateLiteral") return undefined;
  return (node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join("*");
}

/** Everything a module reaches for by name: imports, re-exports, import(), require(), new URL(…, import.meta.url). */
function importsOf(program: Node): Import[] {
  const found: Import[] = [];
  visit(program, (node) => {
    const args = (node.arguments ?? []) as unknown[];
    const callee = isNode(node.callee) ? node.callee.name : undefined;
    const target =
      node.type === "ImportDeclaration" || node.type.startsWith("Export") || node.type === "ImportExpression"
        ? textOf(node.source)
        : node.type === "TSImportType"
          ? textOf(node.argument)
          : node.type === "CallExpression" && callee === "require"
            ? textOf(args[0])
            : node.type === "NewExpression" && callee === "URL" && args.length > 1
              ? textOf(args[0])
              : undefined;
    if (target !== undefined) {
      const typeOnly = node.importKind === "type" || node.exportKind === "type" || node.type === "TSImportType";
      found.push({ target, line: lineOf(node), typeOnly });
    }
  });
  return found;
}

const isRelative = (target: string): boolean => /^\.{0,2}\//.test(target);
const resolve = (from: string, target: string): string => posix.normalize(posix.join(posix.dirname(from), target));

/** Law 3: wasm memory is seen by heap.ts alone. */
export const onlyHeapTouchesMemory: Law = (root) =>
  filesIn(root, ["js/src"], JS)
    .filter((path) => path !== HEAP && path !== MODULE_TYPES)
    .flatMap((path) => {
      const found: Violation[] = [];
      visit(parseScript(root, path), (node) => {
        const name = node.type === "Identifier" ? node.name : textOf(node);
        if (typeof name !== "string" || !/^(HEAP[A-Z]*\d+|_malloc|_free|_realloc)$/.test(name)) return;
        found.push({ path, line: lineOf(node), problem: `${name}: only ${HEAP} touches wasm memory` });
      });
      return found;
    });

/** Law 3: the glue is imported by the two entries alone. */
export const onlyEntriesImportTheGlue: Law = (root) =>
  filesIn(root, ["js/src", "web-demo"], JS)
    .filter((path) => !PLATFORMS.includes(path))
    .flatMap((path) =>
      importsOf(parseScript(root, path))
        .filter(({ target }) => /(^|\/)wasm\/|lookback-(simd|relaxed|\*)|\.wasm(\?|$)/.test(target))
        .map(({ target, line }) => ({
          path,
          line,
          problem: `${target}: only ${PLATFORMS.join(" and ")} import the glue`,
        })),
    );

/** Law 5: a reference in the tests shares no code with the package. */
export const jsReferencesAreIndependent: Law = (root) =>
  filesIn(root, ["tests"], JS)
    .filter((path) => /reference/i.test(posix.basename(path)) && !/\.test\./.test(path))
    .flatMap((path) =>
      importsOf(parseScript(root, path))
        .filter(({ typeOnly }) => !typeOnly)
        .filter(({ target }) =>
          isRelative(target) ? !resolve(path, target).startsWith("tests/") : /^lookback\b/.test(target),
        )
        .map(({ target, line }) => ({ path, line, problem: `a reference must not import ${target}` })),
    );

/** Law 6: the page and the view components use the package as anybody does. */
export const guestsUseTheNameOnly: Law = (root) => {
  const manifest = JSON.parse(read(root, "package.json")) as { name: string; exports: Record<string, unknown> };
  const exported = Object.keys(manifest.exports).map((key) => posix.join(manifest.name, key));
  return ["web-demo", "js/src/view"].flatMap((guest) =>
    filesIn(root, [guest], JS).flatMap((path) =>
      importsOf(parseScript(root, path))
        .filter(({ target }) => {
          // A path from the page's own root (/main.ts) stays in the page.
          if (target.startsWith("/")) return false;
          if (isRelative(target)) return !resolve(path, target).startsWith(`${guest}/`);
          return (target === manifest.name || target.startsWith(`${manifest.name}/`)) && !exported.includes(target);
        })
        .map(({ target, line }) => ({ path, line, problem: `${guest} uses what the package exports, not ${target}` })),
    ),
  );
};

/** Law 7: what callers get is a LookbackError with a code. The command line speaks to people, not to callers. */
export const onlyLookbackErrors: Law = (root) =>
  filesIn(root, ["js/src"], JS)
    .filter((path) => !path.startsWith("js/src/cli/") && path !== READERS)
    .flatMap((path) => {
      const found: Violation[] = [];
      visit(parseScript(root, path), (node) => {
        if ((node.type !== "NewExpression" && node.type !== "CallExpression") || !isNode(node.callee)) return;
        const name = node.callee.name as string | undefined;
        if (name !== undefined && BUILT_IN_ERRORS.has(name))
          found.push({ path, line: lineOf(node), problem: `${name}: callers are given a LookbackError` });
      });
      return found;
    });

/** B5: nothing waits at import, so that require() works. */
export const noTopLevelAwait: Law = (root) =>
  filesIn(root, ["js/src"], JS).flatMap((path) => {
    const found: Violation[] = [];
    visit(parseScript(root, path), (node, ancestors) => {
      const waits = node.type === "AwaitExpression" || (node.type === "ForOfStatement" && node.await === true);
      const inFunction = ancestors.some(({ type }) => /Function|Method|ArrowFunctionExpression/.test(type));
      if (waits && !inFunction) found.push({ path, line: lineOf(node), problem: "top-level await" });
    });
    return found;
  });

/** The files the two laws on references speak of. */
export const references = (root: string): string[] =>
  projectFiles(root).filter(
    (path) => path.startsWith("tests/") && /reference[^/]*$/i.test(path) && !/\.test\./.test(path),
  );

/** Comments blanked, for laws that look at the words of a script. */
export function scriptComments(text: string, path: string): [number, number][] {
  const plugins: "typescript"[] = /\.m?tsx?$/.test(path) ? ["typescript"] : [];
  return (parse(text, { sourceType: "module", plugins }).comments ?? []).map(({ start, end }) => [
    start ?? 0,
    end ?? 0,
  ]);
}
