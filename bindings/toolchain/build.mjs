/** Configures and builds what is stale: CMake's presets and TypeScript. */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import lockfile from "proper-lockfile";
import { emscriptenVersion, xsimdVersion } from "./find.mjs";
import { testNode } from "./nodes.mjs";
import { buildFolder, readIfThere, root } from "./paths.mjs";
import { progressOf, run } from "./shell.mjs";

/** @typedef {import("./find.mjs").Tools} Tools */
/** @typedef {import("listr2").ListrTask} Task */

export const presets = /** @type {const} */ (["native-debug", "wasm-simd", "wasm-relaxed"]);
/** @typedef {typeof presets[number] | "native-release"} Preset */

/** One build at a time in a checkout; a second process waits and then finds everything built.
 * @template T
 * @param {() => Promise<T>} action
 */
export async function buildingAlone(action) {
  mkdirSync(buildFolder, { recursive: true });
  const release = await lockfile.lock(buildFolder, {
    stale: 15_000,
    retries: { forever: true, minTimeout: 200, maxTimeout: 500, factor: 1 },
    onCompromised: () => {},
  });
  try {
    return await action();
  } finally {
    await release().catch(() => {});
  }
}

/**
 * Tells CMake what was found (CMakeLists.txt reads the file). When it changes, caches that remember other tools are dropped.
 * @param {Tools} tools
 */
export function writeToolchain(tools) {
  const quoted = (/** @type {string | undefined} */ value) => `"${(value ?? "").replace(/[\\"$]/g, "\\$&")}"`;
  const identity = [
    `# Emscripten ${tools.emscripten && emscriptenVersion(tools.emscripten)}, xsimd ${tools.xsimd && xsimdVersion(tools.xsimd)}`,
    `set(LOOKBACK_EMSCRIPTEN ${quoted(tools.emscripten)})`,
    `set(LOOKBACK_XSIMD_HINT ${quoted(tools.xsimd)})`,
    `set(LOOKBACK_CLANG ${quoted(tools.clang)})`,
  ].join("\n");
  const nodes = [
    `set(LOOKBACK_NODE_simd ${quoted(process.execPath)})`,
    `set(LOOKBACK_NODE_relaxed ${quoted(testNode("relaxed"))})`,
  ].join("\n");
  const file = join(buildFolder, "toolchain.cmake");
  const before = readIfThere(file);
  const text = `${identity}\n${nodes}\n`;
  if (before === text) return;
  if (before === undefined || !before.startsWith(identity)) {
    // The folder holds files as well (this one), and a path through a file is an error that force does not forgive.
    for (const entry of existsSync(buildFolder) ? readdirSync(buildFolder, { withFileTypes: true }) : []) {
      if (entry.isDirectory()) rmSync(join(buildFolder, entry.name, "CMakeCache.txt"), { force: true });
    }
  }
  mkdirSync(buildFolder, { recursive: true });
  writeFileSync(file, text);
}

/**
 * @param {Tools} tools
 * @param {Preset} preset
 * @param {string[]} targets
 * @returns {Task}
 */
export function cmakeStep(tools, preset, targets) {
  const cmake = tools.cmake ?? "cmake";
  return {
    title: `build ${preset}`,
    task: async (_, task) => {
      const onLine = progressOf(task);
      const folder = join(buildFolder, preset);
      if (!existsSync(join(folder, "build.ninja")) || !existsSync(join(folder, "CMakeCache.txt"))) {
        await run(cmake, ["--preset", preset], { cwd: root, onLine });
      }
      await run(cmake, ["--build", "--preset", preset, "--target", ...targets], {
        cwd: root,
        env: { EM_NODE_JS: process.execPath },
        onLine,
      });
    },
  };
}

/** @returns {Task} */
export function typeScriptStep() {
  return {
    title: "build TypeScript",
    task: async () => {
      dropOrphans(join(root, "dist"), join(root, "js/src"));
      await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", root], { cwd: root });
      await run(process.execPath, [join(root, "bindings/toolchain/view.mjs")], { cwd: root });
    },
  };
}

/**
 * Removes compiled files whose source is gone.
 * @param {string} compiled
 * @param {string} sources
 */
function dropOrphans(compiled, sources) {
  for (const entry of existsSync(compiled) ? readdirSync(compiled, { recursive: true, encoding: "utf8" }) : []) {
    const match = /^(.*?)(\.d\.ts|\.js)$/.exec(entry);
    if (match && !entry.startsWith("wasm") && !existsSync(join(sources, `${match[1]}.ts`)))
      rmSync(join(compiled, entry));
  }
}
