/** Where things are. Node's built-ins only: this is needed before the packages are installed. */
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/[\\/]$/, "");
export const buildFolder = join(root, "build");

/** The user's cache, where the pinned toolchain is kept for every checkout. */
export function cacheFolder() {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return process.env.LOOKBACK_TOOLCHAIN || join(base, "lookback-toolchain");
}

/**
 * The first of these programs that PATH has.
 * @param {...string} names
 * @returns {string | undefined}
 */
export function which(...names) {
  for (const name of names) {
    for (const folder of (process.env.PATH ?? "").split(delimiter)) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        if (statSync(file).isFile()) return file;
      } catch {
        // Not here.
      }
    }
  }
  return undefined;
}

/**
 * @param {...string} candidates
 * @returns {string | undefined}
 */
export function firstExisting(...candidates) {
  return candidates.find((file) => existsSync(file));
}

/**
 * @param {string} file
 * @returns {string | undefined}
 */
export function readIfThere(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * Compares versions like 3.1.69 by their numbers.
 * @param {string} version
 * @param {string} minimum
 */
export function atLeast(version, minimum) {
  const a = version.split(".").map(Number);
  const b = minimum.split(".").map(Number);
  for (let i = 0; i < b.length; ++i) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
