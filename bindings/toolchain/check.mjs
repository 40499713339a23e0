/** npm run check and npm run format: formatters, names, types and laws. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findTools } from "./find.mjs";
import { root } from "./paths.mjs";
import { run } from "./shell.mjs";

const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
const tsc = join(root, "node_modules/typescript/bin/tsc");
const jest = join(root, "node_modules/jest/bin/jest.js");

/** @param {...string} patterns */
async function files(...patterns) {
  const list = await run("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--", ...patterns], {
    cwd: root,
  });
  return list.split("\n").filter((file) => file && existsSync(join(root, file)));
}

/** All checks are made, so that one run shows everything that is to be done. */
export async function check() {
  const tools = findTools();
  const cpp = await files("*.cpp", "*.hpp");
  const native = await files("cpp/*.cpp", "tests/cpp/*.cpp");
  const bindings = await files("bindings/*.cpp");
  // em++ tells its compiler where its system is; clang-tidy has to be told, too.
  const cache = (await run(join(tools.emscripten ?? "", "em-config"), ["CACHE"])).trim();
  const emscripten = ["--target=wasm32-unknown-emscripten", `--sysroot=${join(cache, "sysroot")}`];
  const typeScript = ["tsconfig.check.json", "web-demo/tsconfig.json"].filter((file) => existsSync(join(root, file)));

  /** @type {[name: string, command: string, args: string[]][]} */
  const checks = [
    ["Biome", process.execPath, [biome, "check", "--error-on-warnings"]],
    ["clang-format", tools.clangFormat ?? "", ["--dry-run", "-Werror", ...cpp]],
    ["names of the core", tools.clangTidy ?? "", ["--quiet", "-p", "build/native-debug", ...native]],
    [
      "names of the bindings",
      tools.clangTidy ?? "",
      ["--quiet", "-p", "build/wasm-simd", ...emscripten.map((flag) => `--extra-arg=${flag}`), ...bindings],
    ],
    ...typeScript.map(
      (file) =>
        /** @type {[string, string, string[]]} */ ([
          `types (${file})`,
          process.execPath,
          [tsc, "--noEmit", "-p", file],
        ]),
    ),
    [
      "laws",
      process.execPath,
      [
        "--experimental-vm-modules",
        "--disable-warning=ExperimentalWarning",
        jest,
        "--selectProjects=js",
        "--testPathPatterns=laws",
      ],
    ],
  ];
  let failed = 0;
  for (const [name, command, args] of checks) {
    console.log(`— ${name}`);
    if ((await show(command, args)) !== 0) {
      console.log(`✘ ${name}`);
      ++failed;
    }
  }
  console.log(failed === 0 ? `All ${checks.length} checks passed` : `${failed} of ${checks.length} checks failed`);
  return failed === 0 ? 0 : 1;
}

export async function format() {
  const tools = findTools();
  const codes = [
    await show(process.execPath, [biome, "check", "--write"]),
    await show(tools.clangFormat ?? "", ["-i", ...(await files("*.cpp", "*.hpp"))]),
  ];
  return Math.max(...codes);
}

/**
 * @param {string} command
 * @param {string[]} args
 * @returns {Promise<number>}
 */
function show(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
    child.on("error", (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(1);
    });
    child.on("close", (code) => resolve(code ?? 1));
  });
}
