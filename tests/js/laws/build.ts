/** The laws of the build and of what is published: flags, paths, lock files, sizes of files, exports, opcodes. */
import { existsSync, readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { blank, isText, type Law, matches, projectFiles, read, type Violation } from "./files.js";
import { scriptComments } from "./javascript.js";

/** Written in pieces where this file would break the law it states. */
const FLAGS = [
  "ffast-math",
  "Ofast",
  "Os",
  "Oz",
  "funsafe-math-optimizations",
  "ffinite-math-only",
  "fassociative-math",
];
const FORBIDDEN_FLAG = new RegExp(`(?<![\\w-])-(?:${FLAGS.join("|")})(?![\\w-])|\\b${"MinSize"}Rel\\b`, "g");
const MACHINE_PATH = new RegExp(
  `(?<![\\w.~$}*/-])/(?:${["work", "root", "tmp", "home", "Users"].join("|")})(?=[/"'\`\\s)]|$)`,
  "gm",
);
const REGISTRY = new RegExp(
  [
    "\\bregistry\\.[\\w-]+\\.[a-z]{2,}",
    "\\b[\\w-]*(?:artifactory|nexus|jfrog)[\\w.-]*\\.[a-z]{2,}",
    "\\b(?:deb|ftp|security|snapshot|archive)\\.debian\\.org",
    "\\b(?:files\\.pythonhosted|pypi)\\.org",
    // A host with a port is somebody's own; a page served here is not.
    "https?://(?!(?:localhost|127\\.0\\.0\\.1|\\[::1\\]))[\\w.-]+:\\d{2,5}\\b",
  ].join("|"),
  "g",
);

/** 400, give or take. */
const MOST_LINES = 420;
const SOURCE = [
  ".ts",
  ".tsx",
  ".mts",
  ".js",
  ".mjs",
  ".cpp",
  ".hpp",
  ".h",
  ".css",
  ".html",
  ".sh",
  ".cmake",
  ".py",
  ".yml",
];

/** `#` to the end of the line, unless it stands in a quoted string. */
function hashComments(text: string): [number, number][] {
  return Array.from(text.matchAll(/"(?:[^"\\]|\\[\s\S])*"|(?<![^\s(;])#[^\n]*/g))
    .filter(([found]) => found.startsWith("#"))
    .map((match) => [match.index, match.index + match[0].length]);
}

function withoutComments(path: string, text: string): string {
  if (/\.(ts|mts|js|mjs)$/.test(path)) return blank(text, scriptComments(text, path));
  if (/(CMakeLists\.txt|\.(cmake|sh|yml))$/.test(path)) return blank(text, hashComments(text));
  return text;
}

/** Law 8: no flag that changes what floating-point numbers mean, or trades the kernels' speed for size. */
export const noForbiddenFlags: Law = (root) =>
  projectFiles(root)
    .filter((path) =>
      /(^|\/)(CMakeLists\.txt|CMakePresets\.json|package\.json)$|\.(cmake|sh|yml)$|^bindings\/.*\.m?[jt]s$/.test(path),
    )
    .flatMap((path) =>
      matches(withoutComments(path, read(root, path)), FORBIDDEN_FLAG).map(({ found, line }) => ({
        path,
        line,
        problem: `${found}: see law 8`,
      })),
    );

/** Nothing of the machine a file was written on. */
export const noMachineInFiles: Law = (root) =>
  projectFiles(root)
    .filter((path) => isText(root, path))
    .flatMap((path) => {
      const text = read(root, path);
      return [
        ...matches(text, MACHINE_PATH).map(({ found, line }) => ({ path, line, problem: `absolute path ${found}/…` })),
        ...matches(text, REGISTRY).map(({ found, line }) => ({ path, line, problem: `registry host ${found}` })),
      ];
    });

/** Lock files say which versions, not where they were fetched. */
export const lockFilesNameNoAddress: Law = (root) =>
  projectFiles(root)
    .filter((path) => basename(path) === "package-lock.json")
    .flatMap((path) => {
      const { packages = {} } = JSON.parse(read(root, path)) as { packages?: Record<string, { resolved?: string }> };
      return Object.entries(packages)
        .filter(([, { resolved }]) => resolved !== undefined && /^[\w+]+:\/\//.test(resolved))
        .map(([name, { resolved }]) => ({ path, line: 1, problem: `${name} is resolved to ${resolved}` }));
    });

/** A file can be read in one sitting. */
export const filesAreShort: Law = (root) =>
  projectFiles(root)
    .filter((path) => SOURCE.includes(extname(path)))
    .map((path) => ({ path, lines: read(root, path).split("\n").length - 1 }))
    .filter(({ lines }) => lines > MOST_LINES)
    .map(({ path, lines }) => ({ path, line: lines, problem: `${lines} lines; at most ${MOST_LINES}` }));

/** What package.json promises is there. */
export const exportsExist: Law = (root) => {
  const path = "package.json";
  const manifest = JSON.parse(read(root, path)) as Record<string, unknown>;
  const promised = (value: unknown): string[] =>
    typeof value === "string"
      ? [value]
      : value && typeof value === "object"
        ? Object.values(value).flatMap(promised)
        : [];
  return ["exports", "main", "module", "browser", "types", "bin"]
    .flatMap((key) => promised(manifest[key]))
    .filter((file) => !file.includes("*") && !existsSync(join(root, file)))
    .map((file): Violation => ({ path, line: 1, problem: `${file} does not exist` }));
};

/** Both glues of a variant load the one wasm that is published. */
export const gluesShareOneWasm: Law = (root) =>
  ["simd", "relaxed", "simd-threads", "relaxed-threads"].flatMap((variant) =>
    ["node", "web"].flatMap((environment): Violation[] => {
      const path = `dist/wasm/lookback-${variant}.${environment}.mjs`;
      if (!existsSync(join(root, path))) return [{ path, line: 1, problem: "is missing" }];
      const named = new Set(matches(read(root, path), /[\w.-]+\.wasm\b/g).map(({ found }) => found));
      named.delete(`lookback-${variant}.wasm`);
      return [...named].map((other) => ({ path, line: 1, problem: `names ${other}` }));
    }),
  );

interface WabtModule {
  toText(options: object): string;
  destroy(): void;
}
interface Wabt {
  readWasm(bytes: Uint8Array, features: object): WabtModule;
}

/** The relaxed opcodes of a wasm file, as WABT's disassembler names them. */
export async function relaxedOpcodes(file: string): Promise<string[]> {
  const { default: start } = (await import("wabt")) as unknown as { default: () => Promise<Wabt> };
  // Without its debug names nothing in the text but an instruction can be called relaxed.
  const bytes = new Uint8Array(readFileSync(file));
  const features = { simd: true, relaxed_simd: true, threads: true, bulk_memory: true, sign_extension: true };
  const module = (await start()).readWasm(bytes, { ...features, readDebugNames: false });
  const code = module.toText({}).replace(/"(?:[^"\\]|\\.)*"/g, '""');
  module.destroy();
  return [...new Set(code.match(/\b[if]\d+x\d+\.(?:relaxed_\w+|dot_i8x16_i7x16\w*)/g) ?? [])].sort();
}
