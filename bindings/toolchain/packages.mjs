/** Installs npm packages where node_modules is missing or is not what the lock file says. Node's built-ins only. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildFolder, readIfThere } from "./paths.mjs";

/**
 * Whether the folder's node_modules holds what its lock file says; npm keeps its own record of what it installed, written last.
 * @param {string} folder
 */
export function isInstalled(folder) {
  const record = readIfThere(join(folder, "node_modules/.package-lock.json"));
  if (record === undefined) return false;
  const wanted = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")).packages;
  const present = JSON.parse(record).packages;
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === "") continue;
    const found = present[path];
    // What is meant for another platform is left out by npm.
    if (found === undefined ? !entry.optional : found.version !== entry.version) return false;
    if (found !== undefined && !existsSync(join(folder, path))) return false;
  }
  return true;
}

/**
 * Runs `npm ci` there if it is needed; a second process waits for the first.
 * @param {string} folder
 * @param {string} label
 */
export async function installPackages(folder, label) {
  if (isInstalled(folder)) return;
  const release = await takeTurn(`npm-${label.replace(/\W+/g, "-")}`);
  try {
    if (isInstalled(folder)) return;
    const start = Date.now();
    console.log(`Installing ${label} (npm ci) …`);
    const npm = process.env.npm_execpath;
    const [command, before] = npm?.endsWith("js") ? [process.execPath, [npm]] : ["npm", []];
    const output = await run(
      command,
      [...before, "ci", "--include=dev", "--no-fund", "--no-audit", "--loglevel=error"],
      folder,
    );
    if (output.code !== 0) {
      // npm follows its reason with its whole manual.
      const reason = output.text.split(/\nnpm error\s*\nnpm error (?:Clean install|Usage)/)[0]?.trim();
      throw new Error(`npm ci failed in ${folder}:\n${reason}`);
    }
    console.log(`Installed ${label} in ${((Date.now() - start) / 1000).toFixed(1)} s`);
  } finally {
    release();
  }
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 * @returns {Promise<{ code: number, text: string }>}
 */
function run(command, args, cwd) {
  // npm's own variables would make the inner npm take the outer one's settings (its prefix above all).
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith("npm_")),
  );
  for (const [name, value] of Object.entries(process.env)) {
    if (/^npm_config_(registry|cache|userconfig|proxy|https_proxy|noproxy|cafile)$/i.test(name)) env[name] = value;
  }
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    child.stdout.on("data", (data) => (text += data));
    child.stderr.on("data", (data) => (text += data));
    child.on("error", (error) => resolve({ code: 1, text: `${command}: ${error.message}` }));
    child.on("close", (code) => resolve({ code: code ?? 1, text }));
  });
}

/**
 * A lock by a folder that names its owner's process; an owner that is gone has none. (The library for locks is not installed yet.)
 * @param {string} name
 */
async function takeTurn(name) {
  mkdirSync(buildFolder, { recursive: true });
  const lock = join(buildFolder, `${name}.lock`);
  const mine = `${lock}.${process.pid}`;
  rmSync(mine, { recursive: true, force: true });
  mkdirSync(mine);
  writeFileSync(join(mine, "owner"), String(process.pid));
  let told = false;
  for (;;) {
    try {
      // A rename onto a folder that is not empty fails: the owner is inside from the first moment on.
      renameSync(mine, lock);
      return () => rmSync(lock, { recursive: true, force: true });
    } catch {
      const owner = Number(readIfThere(join(lock, "owner")));
      if (owner > 0 && !isAlive(owner)) {
        const gone = `${lock}.gone.${process.pid}`;
        try {
          renameSync(lock, gone);
          // Between the look and the rename another process may have taken its turn: then it keeps it.
          if (Number(readIfThere(join(gone, "owner"))) !== owner) renameSync(gone, lock);
          rmSync(gone, { recursive: true, force: true });
        } catch {
          // Another process took it away first.
        }
        continue;
      }
      if (!told) console.log("Waiting for another process that installs the same …");
      told = true;
      await sleep(300);
    }
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM";
  }
}
