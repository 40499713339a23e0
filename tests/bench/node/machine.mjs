/** What the numbers were measured on. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { emscriptenVersion, findTools } from "../../../bindings/toolchain/find.mjs";
import { readIfThere, root } from "../../../bindings/toolchain/paths.mjs";

const peers = join(root, "tests/bench/peers");

/** @returns {number} */
export const loadNow = () => os.loadavg()[0] ?? 0;

/**
 * @param {string} node the program that runs the cases
 * @returns {{ engine: string, v8: string }}
 */
export function engineOf(node) {
  const { node: version, v8 } = JSON.parse(
    execFileSync(node, ["-p", "JSON.stringify(process.versions)"], { encoding: "utf8" }),
  );
  return { engine: `Node.js ${version}`, v8 };
}

/**
 * @param {{ engine: string, v8: string }} engine
 * @param {readonly [number, number]} load
 * @returns {import("../core/types.ts").Machine}
 */
export function machineOf(engine, load) {
  const [cpu] = os.cpus();
  const release = /^PRETTY_NAME="?([^"\n]*)/m.exec(readIfThere("/etc/os-release") ?? "")?.[1];
  return {
    cpu: cpu?.model.trim() ?? "unknown CPU",
    cores: os.cpus().length,
    memoryBytes: os.totalmem(),
    system: `${release ?? `${os.type()} ${os.release()}`} (${os.arch()})`,
    ...engine,
    versions: versions(),
    load,
  };
}

function versions() {
  const version = (/** @type {string} */ folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const { emscripten } = findTools();
  const { dependencies } = version(peers);
  const installed = readdirSync(peers).includes("node_modules");
  return {
    lookback: version(root).version,
    ...(emscripten && { Emscripten: emscriptenVersion(emscripten) }),
    ...Object.fromEntries(
      Object.keys(installed ? dependencies : {}).map((name) => [
        name,
        version(join(peers, "node_modules", name)).version,
      ]),
    ),
  };
}
