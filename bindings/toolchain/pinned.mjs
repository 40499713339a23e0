/**
 * The pinned toolchain: Emscripten 3.1.69 and xsimd 13.2 of Debian 13, unpacked into the cache beside Debian 12's clang 19.
 *
 * Every step may be interrupted: what a step leaves behind is either complete under its final name or ignored under a temporary one.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { aptGet, debianMirror } from "./apt.mjs";
import { pinnedFolder, pinnedStamp } from "./find.mjs";
import { which } from "./paths.mjs";
import { Advice, progressOf, run } from "./shell.mjs";

/** Binaryen needs the newer C and C++ libraries; node-acorn is Emscripten's JavaScript parser. */
const packages = ["emscripten", "libxsimd-dev", "binaryen", "libc6", "libstdc++6", "libgcc-s1", "node-acorn"];

/** Debian ships Emscripten's libraries prebuilt: those that are never linked here are left out. */
const libraries = "./usr/share/emscripten/cache/sysroot/lib/wasm32-emscripten";
const leftOut = [
  ...["lto", "pic", "lto-pic"].map((kind) => `${libraries}/${kind}`),
  "*/libGL-*-*",
  "*asan*",
  "./usr/share/emscripten/test",
  "./usr/share/doc",
  "*/gconv",
];

/** @returns {import("listr2").ListrTask[]} */
export function pinnedSteps() {
  if (process.arch !== "x64") {
    throw new Advice(
      "Please install Emscripten 3.1.69 or newer (emsdk) and xsimd 13.2: the pinned ones are set up on x86-64 only.",
    );
  }
  const folder = pinnedFolder();
  const unpacked = existsSync(join(folder, "debian"));
  return [
    {
      title: "Emscripten 3.1.69 and xsimd 13.2: download",
      skip: () => unpacked,
      task: (_, task) => download(folder, progressOf(task)),
    },
    {
      title: "Emscripten 3.1.69 and xsimd 13.2: unpack",
      skip: () => unpacked,
      task: (_, task) => unpack(folder, progressOf(task)),
    },
    { title: "Emscripten 3.1.69 and xsimd 13.2: connect", task: () => connect(folder) },
  ];
}

/**
 * @param {string} folder
 * @param {(line: string) => void} [onLine]
 */
async function download(folder, onLine) {
  const apt = join(folder, "apt");
  const incoming = join(folder, `incoming.${process.pid}`);
  const debs = join(folder, "debs");
  mkdirSync(folder, { recursive: true });
  dropLeftovers(folder, "incoming");
  for (const path of [join(apt, "lists/partial"), join(apt, "cache/archives/partial"), incoming, debs])
    mkdirSync(path, { recursive: true });

  const mirror = await debianMirror();
  const sources = join(apt, "sources.list");
  writeFileSync(sources, `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror} trixie main\n`);
  // Without the system's sources, pins and default release: a pin to Debian 12 would silently bring its old Emscripten.
  const options = [
    `Dir::Etc::sourcelist=${sources}`,
    "Dir::Etc::sourceparts=/dev/null",
    "Dir::Etc::preferences=/dev/null",
    "Dir::Etc::preferencesparts=/dev/null",
    "APT::Default-Release=",
    `Dir::State::Lists=${join(apt, "lists")}`,
    `Dir::Cache=${join(apt, "cache")}`,
    "APT::Sandbox::User=root",
    "Acquire::Languages=none",
  ].flatMap((option) => ["-o", option]);

  const have = readdirSync(debs);
  const missing = packages.filter((name) => !have.some((file) => file.startsWith(`${name}_`)));
  if (missing.length === 0) return;
  await aptGet([...options, "update"], onLine);
  for (const name of missing) {
    onLine?.(`${name} (${missing.indexOf(name) + 1} of ${missing.length})`);
    await aptGet([...options, "download", name], undefined, incoming);
    for (const file of readdirSync(incoming)) renameSync(join(incoming, file), join(debs, file));
  }
}

/**
 * @param {string} folder
 * @param {(line: string) => void} [onLine]
 */
async function unpack(folder, onLine) {
  const unfinished = join(folder, `unfinished.${process.pid}`);
  dropLeftovers(folder, "unfinished");
  mkdirSync(unfinished, { recursive: true });
  const debs = join(folder, "debs");
  for (const deb of readdirSync(debs)) {
    onLine?.(deb);
    const exclude = leftOut.map((pattern) => `--exclude='${pattern}'`).join(" ");
    await run("bash", [
      "-o",
      "pipefail",
      "-c",
      `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" ${exclude}`,
      "bash",
      join(debs, deb),
      unfinished,
    ]);
  }
  renameSync(unfinished, join(folder, "debian"));
}

/**
 * What holds absolute paths; made anew when the cache was moved.
 * @param {string} folder
 */
async function connect(folder) {
  const debian = join(folder, "debian");
  const link = (/** @type {string} */ target, /** @type {string} */ path) => {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(join(path, ".."), { recursive: true });
    symlinkSync(target, path);
  };
  // acorn alone and xsimd alone: their whole folders would put more within reach than is meant.
  link("../nodejs/acorn", join(debian, "usr/share/node_modules/acorn"));
  link("../debian/usr/include/xsimd", join(folder, "include/xsimd"));

  // Binaryen is started through the C library that it was built for.
  const bin = join(folder, "binaryen/bin");
  mkdirSync(bin, { recursive: true });
  const loader = join(debian, "usr/lib64/ld-linux-x86-64.so.2");
  const libraryPath = join(debian, "usr/lib/x86_64-linux-gnu");
  for (const tool of readdirSync(join(debian, "usr/bin")).filter((name) => /^wasm(-|2js$)/.test(name))) {
    const wrapper = join(bin, tool);
    writeFileSync(
      wrapper,
      `#!/bin/sh\nexec "${loader}" --library-path "${libraryPath}" "${join(debian, "usr/bin", tool)}" "$@"\n`,
    );
    chmodSync(wrapper, 0o755);
  }

  // Emscripten's scripts are CommonJS, whatever a package.json in a folder above the cache says.
  writeFileSync(join(folder, "package.json"), '{ "type": "commonjs" }\n');

  // Emscripten reads this file without being told, so that cmake can be run by hand, too.
  const emscripten = join(debian, "usr/share/emscripten");
  const config = [
    "import shutil",
    "LLVM_ROOT = '/usr/lib/llvm-19/bin'",
    `BINARYEN_ROOT = ${JSON.stringify(join(folder, "binaryen"))}`,
    `NODE_JS = shutil.which('node') or ${JSON.stringify(which("node") ?? process.execPath)}`,
    `CACHE = ${JSON.stringify(join(emscripten, "cache"))}`,
  ];
  writeFileSync(join(emscripten, ".emscripten"), `${config.join("\n")}\n`);

  const version = await run(join(emscripten, "emcc"), ["--version"]);
  if (!version.includes("3.1.69")) throw new Error(`Emscripten does not start: ${version}`);
  writeFileSync(join(folder, "ready.new"), `${pinnedStamp(folder)}\n`);
  renameSync(join(folder, "ready.new"), join(folder, "ready"));
  for (const used of ["apt", "debs"]) rmSync(join(folder, used), { recursive: true, force: true });
  for (const name of ["incoming", "unfinished"]) dropLeftovers(folder, name);
}

/**
 * Removes what interrupted runs left. A program that such a run started may still be writing there, so every run has a folder
 * of its own, and one that can't be removed yet is left to the next.
 * @param {string} folder
 * @param {string} name
 */
function dropLeftovers(folder, name) {
  for (const entry of readdirSync(folder).filter((file) => file.startsWith(`${name}.`))) {
    try {
      rmSync(join(folder, entry), { recursive: true, force: true });
    } catch {
      // Still in use.
    }
  }
}
