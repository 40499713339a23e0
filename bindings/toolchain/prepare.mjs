/** Makes everything ready for a verb: packages, tools, builds. What is ready already costs next to nothing. */
import { Listr, PRESET_TIMER } from "listr2";
import { buildingAlone, cmakeStep, typeScriptStep, writeToolchain } from "./build.mjs";
import { alone, setUpSteps, wantedTools } from "./debian.mjs";
import { findTools, optional } from "./find.mjs";
import { Advice, Failed } from "./shell.mjs";

/** @typedef {import("./find.mjs").Purpose} Purpose */

/**
 * @param {Purpose[]} purposes
 * @returns {Promise<import("./find.mjs").Tools>}
 */
export async function prepareTools(purposes) {
  if (wantedTools(purposes).length > 0) {
    await alone(async () => {
      // Another process may have set up meanwhile.
      if (wantedTools(purposes).length === 0) return;
      console.log("Setting up the tools (once) …");
      await runSteps(await setUpSteps(purposes));
      const missing = wantedTools(purposes).filter((name) => !optional.includes(name));
      if (missing.length > 0) throw new Advice(`Still missing after the set-up: ${missing.join(", ")}`);
    });
  }
  return findTools();
}

/**
 * @param {import("./find.mjs").Tools} tools
 * @param {{ cpp?: boolean, cppTests?: boolean, bench?: boolean, typeScript?: boolean, configureNative?: boolean }} what
 */
export async function build(tools, { cpp = true, cppTests = false, bench = false, typeScript = true }) {
  await buildingAlone(async () => {
    writeToolchain(tools);
    const steps = [];
    if (typeScript) steps.push(typeScriptStep());
    if (cpp) {
      const targets = ["all", ...(cppTests ? ["lookback_tests"] : []), ...(bench ? ["ceilings"] : [])];
      steps.push(cmakeStep(tools, "wasm-simd", targets), cmakeStep(tools, "wasm-relaxed", targets));
      if (cppTests) steps.push(cmakeStep(tools, "native-debug", ["lookback_tests"]));
    }
    await runSteps(steps, 2);
  });
}

// What took no noticeable time needs no time beside it.
const timer = { ...PRESET_TIMER, condition: (/** @type {number} */ milliseconds) => milliseconds > 500 };

/**
 * @param {import("listr2").ListrTask[]} steps
 * @param {number} [concurrent]
 */
async function runSteps(steps, concurrent = 1) {
  const tasks = new Listr(steps, {
    concurrent,
    exitOnError: true,
    fallbackRenderer: "simple",
    rendererOptions: { timer },
    fallbackRendererOptions: { timer },
  });
  try {
    await tasks.run();
  } catch (error) {
    // The renderer for logs has shown it in full; the one for terminals cuts it.
    if (!process.stdout.isTTY) throw new Failed();
    throw error;
  }
}
