/** The laws of ARCHITECTURE.md: each holds here, and each finds a violation that is planted. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import * as build from "./laws/build.js";
import * as cpp from "./laws/cpp.js";
import * as docs from "./laws/docs.js";
import type { Law } from "./laws/files.js";
import * as script from "./laws/javascript.js";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");

type Files = Readonly<Record<string, string>>;

const planted: string[] = [];
afterEach(() => {
  for (const folder of planted.splice(0)) rmSync(folder, { recursive: true });
});

function plant(files: Files): string {
  const root = mkdtempSync(join(tmpdir(), "lookback-law-"));
  planted.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** A law holds in the project, holds in `lawful` and finds something in each of `unlawful`, added to it. */
function law(
  name: string,
  check: Law,
  { lawful = {}, unlawful }: { lawful?: Files; unlawful: Readonly<Record<string, Files>> },
) {
  describe(name, () => {
    test("holds in the project", () => expect(check(ROOT)).toEqual([]));
    if (Object.keys(lawful).length > 0) test("lets the lawful pass", () => expect(check(plant(lawful))).toEqual([]));
    for (const [what, files] of Object.entries(unlawful))
      test(`finds ${what}`, () => {
        const found = check(plant({ ...lawful, ...files }));
        expect(found.map(({ path }) => path)).toEqual([Object.keys(files)[0]]);
      });
  });
}

const KERNEL = "cpp/src/kernels/tile.cpp";
const HEADERS: Files = {
  "cpp/include/lookback/views.hpp": "#pragma once\n",
  "cpp/include/lookback/attention.hpp": '#pragma once\n#include "lookback/views.hpp"\n',
  "cpp/src/kernels/simd.hpp": "#pragma once\n#include <xsimd/xsimd.hpp>\n#include <wasm_simd128.h>\n",
  "cpp/src/attention/plan.hpp": '#pragma once\n#include "lookback/attention.hpp"\n#include "kernels/simd.hpp"\n',
  "cpp/src/layers/linear.hpp": '#pragma once\n#include "attention/plan.hpp"\n',
};

law("law 1: arrows point down", cpp.arrowsPointDown, {
  lawful: HEADERS,
  unlawful: {
    "a kernel that knows attention": { [KERNEL]: '#include "attention/plan.hpp"\n' },
    "a kernel that climbs by a relative path": { [KERNEL]: '#include "../layers/linear.hpp"\n' },
    "a kernel that knows the public attention call": { [KERNEL]: '#include "lookback/attention.hpp"\n' },
    "attention that knows layers": { "cpp/src/attention/forward.cpp": '#include "layers/linear.hpp"\n' },
    "a public header that knows the inside": { "cpp/include/lookback/all.hpp": '#include "kernels/simd.hpp"\n' },
    "a file outside of the rooms": { "cpp/src/misc.cpp": "\n" },
    "a room nobody knows": { "cpp/src/utils/misc.cpp": "\n" },
  },
});

law("law 1: the core knows no Emscripten, stdio, exceptions or abort", cpp.coreIsPure, {
  lawful: { [KERNEL]: '// throw, abort()\n/* printf */ const char* text = "throw; // try";\nint retry, throws;\n' },
  unlawful: {
    Emscripten: { [KERNEL]: "#include <emscripten/bind.h>\n" },
    stdio: { "cpp/src/attention/forward.cpp": "#include <cstdio>\n" },
    "a throw": { "cpp/src/attention/forward.cpp": "void f() { throw 1; }\n" },
    "a try": { "cpp/src/attention/forward.cpp": "void f() {\n  try { g(); }\n}\n" },
    "a throw in a macro": {
      "cpp/include/lookback/x.hpp": "#define CHECK(x) do { if (!(x)) throw 1; } while (0) // fine\n",
    },
    "an abort": { [KERNEL]: "void f() { std::abort(); }\n" },
    "a printf": { [KERNEL]: 'void f() { std::printf("x"); }\n' },
    "an #ifdef of Emscripten": { [KERNEL]: "#if defined(__EMSCRIPTEN__)\n#endif\n" },
    "a mask in a kernel": { [KERNEL]: "void f(const MaskView& mask);\n" },
  },
});

law("law 2: only simd.hpp knows xsimd and the instruction set", cpp.oneSeam, {
  lawful: { ...HEADERS, [KERNEL]: '#include "kernels/simd.hpp"\n// xsimd::fma\n' },
  unlawful: {
    "a second include of xsimd": { [KERNEL]: "#include <xsimd/xsimd.hpp>\n" },
    "a second include of the intrinsics": { "cpp/src/attention/forward.cpp": "#include <wasm_simd128.h>\n" },
    "an intrinsic": { [KERNEL]: "auto f(auto a) { return wasm_f32x4_neg(a); }\n" },
    "an xsimd name": { [KERNEL]: "xsimd::batch<float> f();\n" },
  },
});

law("law 3: bindings see the public headers only", cpp.bindingsUseThePublicApi, {
  lawful: {
    ...HEADERS,
    "bindings/marshal.hpp": "#pragma once\n#include <vector>\n",
    "bindings/module.cpp": '#include <emscripten/bind.h>\n#include "lookback/attention.hpp"\n#include "marshal.hpp"\n',
  },
  unlawful: {
    "an include of the inside": { "bindings/other.cpp": '#include "kernels/simd.hpp"\n' },
    "an include of the inside by path": { "bindings/other.cpp": '#include "../cpp/src/kernels/simd.hpp"\n' },
    "an include of xsimd": { "bindings/other.cpp": "#include <xsimd/xsimd.hpp>\n" },
  },
});

law("law 3: only heap.ts touches wasm memory", script.onlyHeapTouchesMemory, {
  lawful: {
    "js/src/heap.ts": "export const bytes = (raw: any) => raw.HEAPU8;\n",
    "js/src/attention.ts": "// raw.HEAPF32\nexport const HEAP = 'the HEAPU8 of it';\n",
  },
  unlawful: {
    "a view": { "js/src/other.ts": "export const f = (raw: any) => raw.HEAPF32[0];\n" },
    "a view by a string": { "js/src/other.ts": "export const f = (raw: any) => raw['HEAPU8'];\n" },
    "a malloc": { "js/src/view/other.ts": "export const f = (raw: any) => raw._malloc(8);\n" },
  },
});

law("law 3: only the two entries import the glue", script.onlyEntriesImportTheGlue, {
  lawful: { "js/src/node.ts": "export const glue = () => import('./wasm/lookback-simd.node.mjs');\n" },
  unlawful: {
    "an import": { "js/src/lookback.ts": "import glue from './wasm/lookback-simd.web.mjs';\nexport { glue };\n" },
    "a computed import": {
      "js/src/lookback.ts": `export const f = (v: string) => import(\`./wasm/lookback-\${v}.web.mjs\`);\n`,
    },
    "a URL": { "web-demo/main.ts": "export const u = new URL('../dist/wasm/lookback-simd.wasm', import.meta.url);\n" },
  },
});

law("law 4: kernels do not allocate", cpp.kernelsDoNotAllocate, {
  lawful: { [KERNEL]: "// new memory\nint newer, freedom; void f(float* out);\n" },
  unlawful: {
    "a new": { [KERNEL]: "void f() { float* p = new float[4]; }\n" },
    "a malloc": { [KERNEL]: "void f() { void* p = std::malloc(4); }\n" },
    "a vector": { [KERNEL]: "void f() { std::vector<float> v(4); }\n" },
    "a string": { "cpp/src/kernels/tile.hpp": "std::string f();\n" },
    "a header of containers": { [KERNEL]: "#include <vector>\n" },
  },
});

law("law 5: references in C++ share no code with the core", cpp.cppReferencesAreIndependent, {
  lawful: {
    ...HEADERS,
    "cpp/include/lookback/status.hpp":
      "Status attend(const Call& call,\n  void* workspace) noexcept;\nint Call::width() const noexcept;\n",
    "tests/cpp/reference.hpp":
      '#include <vector>\n#include "lookback/views.hpp"\n// attend(call)\nvoid attend_plainly(int);\n',
  },
  unlawful: {
    "a reference that uses a kernel": { "tests/cpp/reference.cpp": '#include "kernels/simd.hpp"\n' },
    "a reference that calls the engine": { "tests/cpp/reference.cpp": "void f() { attend(call, nullptr); }\n" },
    "a reference that calls a method of the engine": {
      "tests/cpp/reference.cpp": "int f(Call c) { return c.width(); }\n",
    },
  },
});

law("law 5: references in TypeScript share no code with the package", script.jsReferencesAreIndependent, {
  lawful: {
    "tests/js/reference.ts":
      "import type { Tensor } from 'lookback';\nexport * from './numbers.js';\nexport type { Tensor };\n",
  },
  unlawful: {
    "a reference that imports the package": {
      "tests/js/reference-x.ts": "import { masks } from 'lookback';\nexport { masks };\n",
    },
    "a reference that imports its source": { "tests/js/reference-x.ts": "export * from '../../js/src/masks.js';\n" },
  },
});

test("law 5: there are references to compare with", () => {
  expect(script.references(ROOT)).toContain("tests/js/reference.ts");
});

const PACKAGE = JSON.stringify({ name: "lookback", exports: { ".": { default: "./dist/web.js" } } });

law("law 6: the page and the view use what the package exports", script.guestsUseTheNameOnly, {
  lawful: {
    "package.json": PACKAGE,
    "web-demo/src/main.ts":
      "import { masks } from 'lookback';\nimport './draw.js';\nimport '/icons.js';\nexport { masks };\n",
  },
  unlawful: {
    "a path out of the page": { "web-demo/src/x.ts": "import '../../js/src/masks.js';\n" },
    "a path into the package": { "web-demo/src/x.ts": "import 'lookback/dist/web.js';\n" },
    "a view that reaches behind the name": {
      "js/src/view/x.ts": "import { Heap } from '../heap.js';\nexport { Heap };\n",
    },
    "a dynamic import": { "web-demo/x.ts": "export const f = () => import('../dist/web.js');\n" },
  },
});

law("law 7: a Status cannot be overlooked", cpp.statusIsNodiscard, {
  lawful: { "cpp/include/lookback/status.hpp": "enum class [[nodiscard]] Status : int { ok };\n" },
  unlawful: {
    "a plain Status": {
      "cpp/include/lookback/status.hpp": "// enum class [[nodiscard]] Status\nenum class Status : int { ok };\n",
    },
  },
});

law("law 7: callers are given LookbackErrors", script.onlyLookbackErrors, {
  lawful: {
    "js/src/errors.ts":
      "export class LookbackError extends Error {}\nexport const f = () => { throw new LookbackError('x'); };\n",
  },
  unlawful: {
    "a TypeError": { "js/src/x.ts": "export const f = () => { throw new TypeError('x'); };\n" },
    "a rejected Error": { "js/src/x.ts": "export const f = () => Promise.reject(Error('x'));\n" },
  },
});

law("law 8: no fast math and no -Os in the flags", build.noForbiddenFlags, {
  lawful: {
    "CMakeLists.txt": "# never -ffast-math\nadd_compile_options(-O3) # -Os is slow\n",
    "bindings/x.mjs": "// -Oz\n",
  },
  unlawful: {
    "fast math": { "cpp/CMakeLists.txt": "add_compile_options(-O3 -ffast-math)\n" },
    "a flag in quotes behind a #": { "cpp/CMakeLists.txt": 'set(a "#" "-Os")\n' },
    "a preset for size": { "CMakePresets.json": '{ "CMAKE_CXX_FLAGS_RELEASE": "-Oz -DNDEBUG" }' },
    "a build type for size": { "cpp/x.cmake": "set(CMAKE_BUILD_TYPE MinSizeRel)\n" },
    "a flag in a script": { "bindings/toolchain/x.mjs": "export const flags = ['-Ofast'];\n" },
  },
});

law("law 8: no fast math in the sources", cpp.noFastMathInSources, {
  lawful: { [KERNEL]: "// fast_math\nint x;\n" },
  unlawful: {
    "a pragma": { [KERNEL]: "#pragma float_control(precise, off)\nint x;\n" },
    "an attribute": { [KERNEL]: '__attribute__((optimize("O1"))) void f();\n' },
  },
});

const AT_HOME = ["", "home", "someone", "file"].join("/");
law("files know no machine and no registry", build.noMachineInFiles, {
  lawful: { "a.md": "https://example.org/home/page ./tmp/x node_modules/.bin\n" },
  unlawful: {
    "an absolute path": { "b.ts": `export const path = "${AT_HOME}";\n` },
    "a registry": { "b.yml": `address: https://${["registry", "example", "org"].join(".")}/\n` },
    "somebody's own host": { "b.sh": `fetch http://mirror.example.org${":"}8081/x\n` },
  },
});

law("lock files name versions, not addresses", build.lockFilesNameNoAddress, {
  lawful: {
    "package-lock.json":
      '{ "packages": { "a": { "version": "1.0.0" }, "b": { "resolved": "tests/b", "link": true } } }',
  },
  unlawful: {
    "an address": {
      "tests/x/package-lock.json": '{ "packages": { "a": { "resolved": "https://example.org/a.tgz" } } }',
    },
  },
});

law("files are short", build.filesAreShort, {
  lawful: { "a.ts": "\n".repeat(400), "long.json": "\n".repeat(900) },
  unlawful: { "a long one": { "b.cpp": "\n".repeat(421) } },
});

law("package.json promises what exists", build.exportsExist, {
  lawful: { "package.json": PACKAGE, "dist/web.js": "" },
  unlawful: {
    "a missing file": {
      "package.json": '{ "exports": { ".": { "node": "./dist/node.js", "default": "./dist/web.js" } } }',
    },
    "a missing command": { "package.json": '{ "bin": { "lookback": "./dist/cli/missing.js" } }' },
  },
});

law("B5: nothing waits at import", script.noTopLevelAwait, {
  lawful: { "js/src/a.ts": "export const f = async () => { await g(); for await (const x of y) x(); };\n" },
  unlawful: { "a top-level await": { "js/src/b.ts": "export const x = await import('./a.js');\n" } },
});

law("README.md and README.zh-CN.md say the same", docs.readmesAgree, {
  lawful: {
    "README.md": "# A\n\ntext\n\n```js\n1\n```\n\n## B\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "README.zh-CN.md": "# 甲\n\n文\n\n```js\n1\n```\n\n## 乙\n\n| 甲 | 乙 |\n|---|---|\n| 1 | 2 |\n",
  },
  unlawful: {
    "a missing section": { "README.zh-CN.md": "# 甲\n\n```js\n1\n```\n\n| 甲 | 乙 |\n|---|---|\n| 1 | 2 |\n" },
    "other code": { "README.zh-CN.md": "# 甲\n\n```js\n2\n```\n\n## 乙\n\n| 甲 | 乙 |\n|---|---|\n| 1 | 2 |\n" },
    "a shorter table": { "README.zh-CN.md": "# 甲\n\n```js\n1\n```\n\n## 乙\n\n| 甲 | 乙 |\n|---|---|\n" },
  },
});

const NAMED = (variant: string): string => `const file = "lookback-${variant}.wasm";\n`;
law("both glues of a variant load the same wasm", build.gluesShareOneWasm, {
  lawful: Object.fromEntries(
    ["simd", "relaxed", "simd-threads", "relaxed-threads"].flatMap((variant) =>
      ["node", "web"].map((environment) => [`dist/wasm/lookback-${variant}.${environment}.mjs`, NAMED(variant)]),
    ),
  ),
  unlawful: { "a glue for another wasm": { "dist/wasm/lookback-simd.web.mjs": NAMED("relaxed") } },
});

describe("the published wasm", () => {
  const wasm = (variant: string): string => join(ROOT, `dist/wasm/lookback-${variant}.wasm`);
  const hash = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");

  test("simd has no relaxed opcode", async () => {
    for (const variant of ["simd", "simd-threads"]) expect(await build.relaxedOpcodes(wasm(variant))).toEqual([]);
  });

  test("relaxed has the fused multiply-add", async () => {
    expect(await build.relaxedOpcodes(wasm("relaxed"))).toContain("f32x4.relaxed_madd");
  });

  for (const variant of ["simd", "relaxed", "simd-threads", "relaxed-threads"]) {
    const links = ["node", "web+worker"].map((environment) =>
      join(ROOT, `build/wasm-${variant.replace("-threads", "")}/bindings/${environment}/lookback-${variant}.wasm`),
    );
    // A packed or downloaded dist/ comes without the build tree.
    const built = links.every((file) => existsSync(file)) ? test : test.skip;
    built(`${variant}: both links made the bytes that are published`, () => {
      expect(links.map(hash)).toEqual([hash(wasm(variant)), hash(wasm(variant))]);
    });
  }
});
