/** The laws of the C++ side: directions of includes, the seam, no allocation, no exceptions, no Emscripten. */
import { posix } from "node:path";
import { parser } from "@lezer/cpp";
import { blank, filesIn, type Law, lineAt, matches, projectFiles, read, type Violation } from "./files.js";

const CPP = [".cpp", ".hpp", ".h", ".cc", ".inl"];
/** Rooms below each room: what it may include besides itself and the public headers. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  kernels: [],
  parallel: [],
  attention: ["kernels", "parallel"],
  layers: ["attention", "kernels", "parallel"],
  models: ["layers", "attention", "kernels", "parallel"],
  training: ["layers", "kernels", "parallel"],
};
/** Kernels see numbers and strides, never an attention call. */
const PUBLIC_FOR_KERNELS = ["lookback/views.hpp", "lookback/status.hpp", "lookback/engine.hpp"];
const SEAM = "cpp/src/kernels/simd.hpp";

const FORBIDDEN_HEADERS =
  /^(emscripten.*|c?stdio(\.h)?|iostream|ostream|istream|fstream|print|format|stdexcept|exception|cassert|assert\.h|csignal|signal\.h|csetjmp|setjmp\.h)$/;
const FORBIDDEN_WORDS =
  /\b(throw|try|catch|abort|quick_exit|_Exit|exit|terminate|assert|f?printf|puts|cout|cerr|clog|perror|setjmp|longjmp|EM_ASM\w*|EM_JS\w*|EMSCRIPTEN\w*|__EMSCRIPTEN__)\b/g;
const TARGET_WORDS = /\b(xsimd|v128_t|wasm_\w+|_mm\d*_\w+|__(?:wasm|SSE|AVX|ARM_NEON)\w*)\b/g;
const ALLOCATION =
  /\b(new|delete|malloc|calloc|realloc|free|aligned_alloc|alloca|make_unique|make_shared)\b|\bstd\s*::\s*(vector|string|basic_string|deque|list|map|set|unordered_\w+|function|any|unique_ptr|shared_ptr|valarray|ostringstream|stringstream)\b/g;
const ALLOCATING_HEADERS =
  /^(vector|string|deque|list|map|set|unordered_map|unordered_set|functional|any|memory|valarray|sstream)$/;
const FAST_MATH = /\bfast_?math\b|\bfloat_control\b|\boptimize\s*\(|\bclang\s+fp\b/g;

interface Include {
  readonly target: string;
  readonly system: boolean;
  readonly line: number;
}

interface Source {
  readonly path: string;
  /** Without comments and the contents of strings, at the same positions. */
  readonly code: string;
  readonly includes: readonly Include[];
}

const TEXT_NODES = new Set(["LineComment", "BlockComment", "String", "RawString", "CharLiteral", "SystemLibString"]);

/** Ranges of comments and literals; what a macro is replaced by is one node to the parser, so it is parsed by itself. */
function textRanges(text: string, offset = 0): [number, number][] {
  const ranges: [number, number][] = [];
  parser.parse(text).iterate({
    enter({ name, from, to }) {
      if (TEXT_NODES.has(name)) ranges.push([offset + from, offset + to]);
      else if (name === "PreprocArg") ranges.push(...textRanges(text.slice(from, to), offset + from));
      else return true;
      return false;
    },
  });
  return ranges;
}

export function parseCpp(path: string, text: string): Source {
  const includes: Include[] = [];
  parser.parse(text).iterate({
    enter({ name, from, to, node }) {
      if (name !== "String" && name !== "SystemLibString") return;
      if (node.parent?.name !== "PreprocDirective" || !/#\s*include\s*$/.test(text.slice(node.parent.from, from)))
        return;
      includes.push({
        target: text.slice(from + 1, to - 1),
        system: name === "SystemLibString",
        line: lineAt(text, from),
      });
    },
  });
  return { path, code: blank(text, textRanges(text)), includes };
}

const sources = (root: string, ...folders: string[]): Source[] =>
  filesIn(root, folders, CPP).map((path) => parseCpp(path, read(root, path)));

/** A quoted include as a path from the root, where a file of ours has it. */
function resolve(from: string, target: string, files: ReadonlySet<string>): string | undefined {
  const places = [posix.dirname(from), "cpp/src", "cpp/include", "bindings", "tests/cpp"];
  return places.map((place) => posix.normalize(`${place}/${target}`)).find((path) => files.has(path));
}

const words = (source: Source, pattern: RegExp, why: string): Violation[] =>
  matches(source.code, pattern).map(({ found, line }) => ({
    path: source.path,
    line,
    problem: `${found.trim()}: ${why}`,
  }));

const roomOf = (path: string): string | undefined => /^cpp\/src\/([^/]+)\/./.exec(path)?.[1];

/** Law 1: models → layers → attention → kernels, and everything may use the public headers. */
export const arrowsPointDown: Law = (root) => {
  const files = new Set(projectFiles(root));
  return sources(root, "cpp").flatMap((source) => {
    const room = roomOf(source.path);
    if (source.path.startsWith("cpp/src/") && (room === undefined || !(room in BELOW)))
      return [{ path: source.path, line: 1, problem: `not in a room of cpp/src (${Object.keys(BELOW).join(", ")})` }];
    return source.includes.flatMap(({ target, system, line }) => {
      if (system) return [];
      const path = resolve(source.path, target, files);
      const other = path === undefined ? undefined : roomOf(path);
      const isPublic = path?.startsWith("cpp/include/lookback/") ?? false;
      const allowed =
        room === undefined
          ? isPublic
          : room === "kernels" && isPublic
            ? PUBLIC_FOR_KERNELS.includes(target)
            : isPublic || (other !== undefined && (other === room || BELOW[room]!.includes(other)));
      return allowed
        ? []
        : [{ path: source.path, line, problem: `${room ?? "a public header"} must not include "${target}"` }];
    });
  });
};

/** Law 1: kernels know neither masks nor attention; the core knows no Emscripten, stdio, exceptions, abort. Law 7 too. */
export const coreIsPure: Law = (root) =>
  sources(root, "cpp").flatMap((source) => [
    ...source.includes
      .filter(({ target, system }) => system && FORBIDDEN_HEADERS.test(target))
      .map(({ target, line }) => ({ path: source.path, line, problem: `<${target}> has no place in the core` })),
    ...words(
      source,
      FORBIDDEN_WORDS,
      "the core returns a Status; it neither throws, prints, aborts nor knows Emscripten",
    ),
    ...(roomOf(source.path) === "kernels"
      ? words(
          source,
          /\b(MaskView|BiasView|BroadcastView|Visibility|MaskPlan|AttentionCall)\b/g,
          "kernels know no mask object",
        )
      : []),
  ]);

/** Law 2: one seam to xsimd and to the machine. */
export const oneSeam: Law = (root) =>
  sources(root, "cpp", "bindings").flatMap((source) =>
    source.path === SEAM
      ? []
      : [
          ...source.includes
            .filter(({ target }) => /^xsimd\b|simd128|intrin\.h$|arm_neon/.test(target))
            .map(({ target, line }) => ({ path: source.path, line, problem: `only ${SEAM} includes ${target}` })),
          ...words(source, TARGET_WORDS, `only ${SEAM} knows instruction sets`),
        ],
  );

/** Law 3: bindings see the public C++ API only. */
export const bindingsUseThePublicApi: Law = (root) => {
  const files = new Set(projectFiles(root));
  return sources(root, "bindings").flatMap((source) =>
    source.includes.flatMap(({ target, system, line }) => {
      const path = resolve(source.path, target, files);
      const ours = path?.startsWith("bindings/") || path?.startsWith("cpp/include/lookback/");
      const allowed = system ? !target.includes("/") || target.startsWith("emscripten/") : ours;
      return allowed ? [] : [{ path: source.path, line, problem: `bindings must not include ${target}` }];
    }),
  );
};

/** Law 4: kernels work in memory that was planned before. */
export const kernelsDoNotAllocate: Law = (root) =>
  sources(root, "cpp/src/kernels").flatMap((source) => [
    ...source.includes
      .filter(({ target, system }) => system && ALLOCATING_HEADERS.test(target))
      .map(({ target, line }) => ({ path: source.path, line, problem: `<${target}> allocates` })),
    ...words(source, ALLOCATION, "a kernel does not allocate"),
  ]);

/** Law 5: a C++ reference in the tests takes the public structs as its input, and calls nothing of what it checks. */
export const cppReferencesAreIndependent: Law = (root) => {
  const files = new Set(projectFiles(root));
  const functions = sources(root, "cpp/include").flatMap(({ code }) =>
    Array.from(code.matchAll(/\b([a-z]\w*)\s*\((?=[^;{]*\)\s*(?:const\s*)?noexcept)/g), ([, name]) => name!),
  );
  const calls = new RegExp(`\\b(${[...new Set(functions), "lookback_has_no_function"].join("|")})\\s*\\(`, "g");
  return sources(root, "tests").flatMap((source) => {
    if (!/reference[^/]*$/i.test(source.path)) return [];
    return [
      ...source.includes
        .filter(({ target, system }) => {
          if (system) return /lookback|xsimd/.test(target);
          const path = resolve(source.path, target, files);
          return !(path?.startsWith("tests/") || path?.startsWith("cpp/include/"));
        })
        .map(({ target, line }) => ({ path: source.path, line, problem: `a reference must not include ${target}` })),
      ...words(source, calls, "a reference calls nothing of the core"),
    ];
  });
};

/** Law 7: nobody can overlook a Status. */
export const statusIsNodiscard: Law = (root) => {
  const path = "cpp/include/lookback/status.hpp";
  const { code } = parseCpp(path, read(root, path));
  return /\benum\s+class\s*\[\[\s*nodiscard\s*\]\]\s*Status\b/.test(code)
    ? []
    : [{ path, line: 1, problem: "Status must be declared enum class [[nodiscard]] Status" }];
};

/** Law 8, in the sources: no pragma or attribute brings in what the flags leave out. */
export const noFastMathInSources: Law = (root) =>
  sources(root, "cpp", "bindings").flatMap((source) => words(source, FAST_MATH, "fast math is forbidden"));
