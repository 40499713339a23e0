/**
 * Sets the tools up on Debian: what its release has by apt-get, and on Debian 12 (whose Emscripten and xsimd are too old) those of
 * Debian 13, unpacked into the user's cache and never installed.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import lockfile from "proper-lockfile";
import { aptInstall, isPackaged } from "./apt.mjs";
import { findTools, missingTools, optional } from "./find.mjs";
import { cacheFolder, readIfThere, which } from "./paths.mjs";
import { pinnedSteps } from "./pinned.mjs";
import { Advice, CommandError, progressOf, run } from "./shell.mjs";

/** @typedef {import("./find.mjs").Purpose} Purpose */
/** @typedef {import("./find.mjs").Tools} Tools */
/** @typedef {import("listr2").ListrTask} Task */

/** @type {Record<keyof Tools, string[]>} */
const packagesOf = {
  emscripten: ["emscripten"],
  xsimd: ["libxsimd-dev"],
  python: ["python3"],
  cmake: ["cmake"],
  ninja: ["ninja-build"],
  clang: ["clang-19"],
  sanitizers: ["libclang-rt-19-dev", "llvm-19"],
  googletest: ["googletest"],
  // With a font for the Chinese page: the tests take screenshots.
  chromium: ["chromium", "fonts-wqy-microhei"],
  firefox: ["firefox-esr"],
  webKitDriver: ["webkit2gtk-driver"],
  miniBrowser: ["webkit2gtk-driver"],
  xvfb: ["xvfb"],
  clangFormat: ["clang-format-19"],
  clangTidy: ["clang-tidy-19"],
};

/** What a person installs where this program can't. */
const elsewhere = {
  emscripten: "Emscripten 3.1.69 or newer (emsdk; emcc on PATH)",
  xsimd: "xsimd 13.2 or newer (LOOKBACK_XSIMD = the folder that contains xsimd/)",
  python: "Python 3",
  cmake: "CMake 3.22 or newer",
  ninja: "Ninja",
  clang: "clang++ 19 or newer",
  sanitizers: "clang's sanitizer libraries (compiler-rt)",
  googletest: "GoogleTest's sources (LOOKBACK_GTEST = the folder that contains src/gtest-all.cc)",
  chromium: "Chromium (LOOKBACK_CHROMIUM = its program)",
  firefox: "Firefox 146 or newer (LOOKBACK_FIREFOX = its program)",
  webKitDriver: "WebKitGTK's WebKitWebDriver",
  miniBrowser: "WebKitGTK's MiniBrowser",
  xvfb: "Xvfb",
  clangFormat: "clang-format-19",
  clangTidy: "clang-tidy-19",
};

/** @returns {{ debian: boolean, release: number }} a release without a number (testing, unstable) is newer than all */
function system() {
  const text = readIfThere("/etc/os-release") ?? "";
  const id = /^ID="?([^"\n]*)/m.exec(text)?.[1];
  const version = /^VERSION_ID="?(\d+)/m.exec(text)?.[1];
  return {
    debian: id === "debian" && which("apt-get") !== undefined,
    release: version ? Number(version) : Number.POSITIVE_INFINITY,
  };
}

/**
 * What is not there and has to be, or can be brought.
 * @param {Purpose[]} purposes
 */
export function wantedTools(purposes) {
  const { debian, release } = system();
  const brings = debian && release >= 12 && process.getuid?.() === 0;
  return missingTools(findTools(), purposes).filter((name) => brings || !optional.includes(name));
}

/**
 * The steps that bring what is missing.
 * @param {Purpose[]} purposes
 * @returns {Promise<Task[]>}
 */
export async function setUpSteps(purposes) {
  const missing = wantedTools(purposes);
  const { debian, release } = system();
  if (!debian || release < 12) {
    throw new Advice(
      `Please install: ${missing.map((name) => elsewhere[name]).join("; ")}. (On Debian 12 and newer, as root, this is done for you.)`,
    );
  }

  const noToolchain = missing.includes("emscripten") || missing.includes("xsimd");
  // Debian's emscripten depends on Debian's nodejs, whose files would replace a Node that was put there by hand.
  const usesPinned =
    noToolchain && (release < 13 || (existsSync("/usr/bin/node") && !(await isPackaged("/usr/bin/node"))));
  const names = missing.filter((name) => !(usesPinned && (name === "emscripten" || name === "xsimd")));
  const packages = new Set(names.flatMap((name) => packagesOf[name]));
  if (usesPinned) {
    for (const [name, file] of Object.entries({ "clang-19": "clang", "lld-19": "wasm-ld", "llvm-19": "llvm-ar" })) {
      if (!existsSync(join("/usr/lib/llvm-19/bin", file))) packages.add(name);
    }
    if (!which("python3")) packages.add("python3");
  }

  /** @type {Task[]} */
  const steps = [];
  if (packages.size > 0) {
    const list = [...packages];
    if (process.getuid?.() !== 0)
      throw new Advice(`Please run this once, then try again: sudo apt-get install ${list.join(" ")}`);
    steps.push({
      title: `Debian packages: ${list.join(" ")}`,
      task: (_, task) => aptInstall(list, progressOf(task)),
    });
  }
  if (usesPinned) steps.push(...pinnedSteps());
  if (names.includes("emscripten")) steps.push({ title: "acorn for Emscripten", task: linkAcorn });
  return steps;
}

/**
 * One process at a time sets up; another waits and then finds everything there.
 * @template T
 * @param {() => Promise<T>} action
 */
export async function alone(action) {
  const folder = cacheFolder();
  mkdirSync(folder, { recursive: true });
  let told = false;
  const release = await lockfile.lock(folder, {
    stale: 15_000,
    retries: { forever: true, minTimeout: 500, maxTimeout: 1000, factor: 1 },
    onCompromised: (error) => {
      if (!told) console.error(`The lock of ${folder} was lost: ${error.message}`);
      told = true;
    },
  });
  try {
    return await action();
  } finally {
    await release().catch(() => {});
  }
}

/** Debian's Emscripten imports acorn from Debian's own Node paths; another Node looks in node_modules only. */
async function linkAcorn() {
  const tools = "/usr/share/emscripten/tools";
  const probe = ["--input-type=module", "--eval", "import 'acorn'"];
  try {
    await run(process.execPath, probe, { cwd: tools });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    mkdirSync("/usr/share/node_modules", { recursive: true });
    await run("ln", ["-sfn", "../nodejs/acorn", "/usr/share/node_modules/acorn"]);
    await run(process.execPath, probe, { cwd: tools });
  }
}
