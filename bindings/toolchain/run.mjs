/**
 * The npm verbs: node bindings/toolchain/run.mjs start|test|build|demo|demo:build|bench|models|check|format [arguments]
 *
 * This file and what it imports at first use Node's built-ins only: a bare clone has no packages yet.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { installPackages } from "./packages.mjs";
import { atLeast, root } from "./paths.mjs";

const [verb = "", ...rest] = process.argv.slice(2);

/** @type {Record<string, (args: string[]) => Promise<number>>} */
const verbs = {
  async start(args) {
    await prepared({ purposes: ["build"] });
    return node([join(root, "dist/cli/start.js"), ...args]);
  },
  async build() {
    await prepared({ purposes: ["build"] });
    return 0;
  },
  async demo(args) {
    await prepared({ purposes: ["build"] });
    return node([join(root, "node_modules/vite/bin/vite.js"), "serve", join(root, "web-demo"), ...args]);
  },
  async "demo:build"(args) {
    await prepared({ purposes: ["build"] });
    return node([join(root, "node_modules/vite/bin/vite.js"), "build", join(root, "web-demo"), ...args]);
  },
  async test(args) {
    const { installNodes } = await import("./nodes.mjs");
    await installNodes();
    await installPackages(join(root, "tests/frameworks"), "the frameworks of the examples");
    await prepared({ purposes: ["build", "test"], cppTests: true, bench: true });
    return node([join(root, "tests/run.mjs"), ...args]);
  },
  async bench(args) {
    await benchReady(["build"]);
    return node([join(root, "tests/bench/run.mjs"), ...args]);
  },
  async "bench:browser"(args) {
    await benchReady(["build", "browser"]);
    return node([join(root, "tests/bench/run-browser.mjs"), ...args]);
  },
  "bench:readme": (args) => node([join(root, "tests/bench/readme.mjs"), ...args]),
  async models(args) {
    await prepared({ purposes: ["build"] });
    return node([join(root, "js/models/tools/run.mjs"), ...args]);
  },
  async check() {
    await prepared({ purposes: ["build", "test", "check"], cppTests: true });
    const { check } = await import("./check.mjs");
    return check();
  },
  async format() {
    const { prepareTools } = await import("./prepare.mjs");
    await prepareTools(["check"]);
    const { format } = await import("./check.mjs");
    return format();
  },
};

/** @param {{ purposes: import("./find.mjs").Purpose[], cppTests?: boolean, bench?: boolean }} what */
async function prepared({ purposes, cppTests = false, bench = false }) {
  const { build, prepareTools } = await import("./prepare.mjs");
  const tools = await prepareTools(purposes);
  await build(tools, { cppTests, bench });
}

/**
 * What the benchmarks need besides: the engines they compare, and what they compare with.
 * @param {import("./find.mjs").Purpose[]} purposes
 */
async function benchReady(purposes) {
  const { installNodes } = await import("./nodes.mjs");
  await installNodes();
  await installPackages(join(root, "tests/bench/peers"), "the packages to compare with");
  await prepared({ purposes, bench: true });
}

/**
 * Runs the verb's program in this terminal.
 * @param {string[]} args
 * @returns {Promise<number>}
 */
function node(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: "inherit" });
    // Ctrl+C reaches the child by the terminal, too: let it end by itself, and end with it.
    const forward = (/** @type {NodeJS.Signals} */ signal) => child.kill(signal);
    process.on("SIGINT", forward).on("SIGTERM", forward);
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 1)));
  });
}

async function main() {
  if (!atLeast(process.versions.node, "20.19")) {
    console.error(`Node.js 20.19 or newer is needed; this is ${process.version}.`);
    return 1;
  }
  const action = verbs[verb];
  if (!action) {
    console.error(`Unknown verb "${verb}"; one of: ${Object.keys(verbs).join(", ")}`);
    return 1;
  }
  await installPackages(root, "npm packages");
  return action(rest);
}

main().then(
  (code) => process.exit(code),
  (error) => {
    // A failed program's output or an advice says all; a stack is for our own mistakes.
    if (["CommandError", "Advice"].includes(error?.name)) console.error(error.message);
    else if (error?.name !== "Failed") console.error(error);
    process.exit(1);
  },
);
