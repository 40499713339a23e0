/** Looks for the tools on this machine: by files, without starting any of them, so that it costs no time. */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { atLeast, cacheFolder, firstExisting, readIfThere, which } from "./paths.mjs";

export const minimum = { emscripten: "3.1.69", xsimd: "13.2" };

/** What a verb may need, apart from what every build does. */
/** @typedef {"build" | "test" | "check" | "browser"} Purpose */

/**
 * @typedef {object} Tools
 * @property {string} [emscripten] Emscripten's folder (that has emcc and its CMake files).
 * @property {string} [xsimd] The folder that contains xsimd/xsimd.hpp.
 * @property {string} [python]
 * @property {string} [cmake]
 * @property {string} [ninja]
 * @property {string} [clang] The native C++ compiler.
 * @property {string} [sanitizers] The compiler's sanitizer library.
 * @property {string} [googletest] The folder that has src/gtest-all.cc.
 * @property {string} [chromium]
 * @property {string} [firefox]
 * @property {string} [webKitDriver] WebKitGTK's WebDriver.
 * @property {string} [miniBrowser] WebKitGTK's browser that it drives.
 * @property {string} [xvfb] The X server without a screen that WebKitGTK needs.
 * @property {string} [clangFormat]
 * @property {string} [clangTidy]
 */

/** @type {Record<Purpose, (keyof Tools)[]>} */
export const needs = {
  build: ["python", "cmake", "ninja", "emscripten", "xsimd"],
  test: ["clang", "sanitizers", "googletest", "chromium", "firefox", "webKitDriver", "miniBrowser", "xvfb"],
  check: ["clang", "clangFormat", "clangTidy"],
  browser: ["chromium"],
};

/** Without these the tests that want them are skipped, visibly. @type {(keyof Tools)[]} */
export const optional = ["firefox", "webKitDriver", "miniBrowser", "xvfb"];

/** @returns {Tools} */
export function findTools() {
  const clang = which("clang++-19", "clang++-20", "clang++-21", "clang++-22") ?? which("clang++");
  return {
    emscripten: findEmscripten(),
    xsimd: findXsimd(),
    python: which("python3"),
    cmake: which("cmake"),
    ninja: which("ninja", "ninja-build"),
    clang,
    sanitizers: clang && findSanitizers(clang),
    googletest: firstExisting(
      ...[
        process.env.LOOKBACK_GTEST ?? "",
        "/usr/src/googletest/googletest",
        "/usr/local/src/googletest/googletest",
      ].filter((folder) => folder !== "" && existsSync(join(folder, "src/gtest-all.cc"))),
    ),
    chromium:
      process.env.LOOKBACK_CHROMIUM ?? which("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    firefox: process.env.LOOKBACK_FIREFOX ?? which("firefox-esr", "firefox"),
    webKitDriver: which("WebKitWebDriver"),
    miniBrowser: findMiniBrowser(),
    xvfb: which("Xvfb"),
    clangFormat: which("clang-format-19"),
    clangTidy: which("clang-tidy-19"),
  };
}

/** The Python whose packages tests compare with; they look for those themselves. */
export const findTestPython = () => process.env.LOOKBACK_PYTHON ?? which("python3");

/**
 * @param {Tools} tools
 * @param {Purpose[]} purposes
 */
export function missingTools(tools, purposes) {
  return [...new Set(purposes.flatMap((purpose) => needs[purpose]))].filter((name) => tools[name] === undefined);
}

/** The newest we can take, in the order: what the user names, emsdk, PATH, ours. */
function findEmscripten() {
  const { LOOKBACK_EMSCRIPTEN, EMSDK } = process.env;
  const onPath = which("emcc");
  const beside = onPath && dirname(realpathSync(onPath));
  const folders = [
    LOOKBACK_EMSCRIPTEN,
    EMSDK && join(EMSDK, "upstream/emscripten"),
    beside,
    beside && join(beside, "../libexec"),
    onPath && "/usr/share/emscripten",
    pinnedEmscripten(),
  ];
  return folders.find((folder) => folder && atLeast(emscriptenVersion(folder), minimum.emscripten));
}

/** @param {string} folder */
export function emscriptenVersion(folder) {
  if (!existsSync(join(folder, "cmake/Modules/Platform/Emscripten.cmake"))) return "0";
  return readIfThere(join(folder, "emscripten-version.txt"))?.replace(/[^0-9.]/g, "") ?? "0";
}

function findXsimd() {
  const folders = [
    process.env.LOOKBACK_XSIMD,
    join(pinnedFolder(), "include"),
    "/usr/local/include",
    "/usr/include",
    "/opt/homebrew/include",
  ];
  return folders.find((folder) => folder && atLeast(xsimdVersion(folder), minimum.xsimd));
}

/** @param {string} folder */
export function xsimdVersion(folder) {
  const config = readIfThere(join(folder, "xsimd/config/xsimd_config.hpp")) ?? "";
  const numbers = [...config.matchAll(/#define XSIMD_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)/g)].map((match) => match[1]);
  return numbers.join(".") || "0";
}

/** The toolchain that debian.mjs set up. */
export function pinnedFolder() {
  return join(cacheFolder(), "emscripten-3.1.69");
}

/** Only a finished one that is still where it was made (its wrappers hold absolute paths) and whose compiler is still installed. */
export function pinnedEmscripten() {
  const folder = pinnedFolder();
  if (readIfThere(join(folder, "ready"))?.trim() !== pinnedStamp(folder)) return undefined;
  if (!existsSync("/usr/lib/llvm-19/bin/clang") || !existsSync("/usr/lib/llvm-19/bin/wasm-ld")) return undefined;
  return join(folder, "debian/usr/share/emscripten");
}

/** @param {string} folder */
export function pinnedStamp(folder) {
  return `1 ${folder}`;
}

/** Distributions keep it beside WebKitGTK's other programs, in a folder named by the version of its interface. */
function findMiniBrowser() {
  for (const base of ["/usr/libexec", "/usr/lib64", ...foldersIn("/usr/lib")]) {
    for (const folder of foldersIn(base)) {
      if (!/\/webkit(2)?gtk-[\d.]+$/.test(folder)) continue;
      const found = firstExisting(join(folder, "MiniBrowser"));
      if (found) return found;
    }
  }
  return undefined;
}

/** @param {string} folder */
function foldersIn(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
}

/** @param {string} clang */
function findSanitizers(clang) {
  const resources = join(dirname(realpathSync(clang)), "../lib/clang");
  if (!existsSync(resources)) return undefined;
  for (const version of readdirSync(resources)) {
    const libraries = join(resources, version, "lib");
    for (const system of existsSync(libraries) ? readdirSync(libraries) : []) {
      const asan = readdirSync(join(libraries, system)).find((name) => /^libclang_rt\.asan.*\.(a|dylib)$/.test(name));
      if (asan) return join(libraries, system, asan);
    }
  }
  return undefined;
}
