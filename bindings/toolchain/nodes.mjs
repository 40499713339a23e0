/** The Node.js versions of tests/nodes: not dependencies of the root, where one would replace the system's in every npm script. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { installPackages } from "./packages.mjs";
import { root } from "./paths.mjs";

const folder = join(root, "tests/nodes");
/** The packages hold Linux programs for x86-64. */
export const canInstallNodes = process.platform === "linux" && process.arch === "x64";

export async function installNodes() {
  if (canInstallNodes) await installPackages(folder, "the Node.js versions of the tests");
}

/** Paths of the installed ones, oldest first. */
export function installedNodes() {
  const modules = join(folder, "node_modules");
  if (!existsSync(modules)) return [];
  const names = readdirSync(modules).filter((name) => /^node\d+$/.test(name));
  return names.sort().map((name) => join(modules, name, "bin/node"));
}

/**
 * The Node that runs a variant's tests: relaxed SIMD needs 22 or newer.
 * @param {"simd" | "relaxed"} variant
 * @returns {string | undefined}
 */
export function testNode(variant) {
  if (variant === "simd" || Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  // Its path is known before it is installed.
  return canInstallNodes ? join(folder, "node_modules/node26/bin/node") : undefined;
}
