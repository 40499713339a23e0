/** apt-get, made patient: another process's lock is waited for, an interrupted dpkg is finished first. */
import { setTimeout as sleep } from "node:timers/promises";
import { CommandError, run } from "./shell.mjs";

const patience = 15 * 60_000;

/**
 * @param {string[]} args
 * @param {(line: string) => void} [onLine]
 * @param {string} [cwd]
 */
export async function aptGet(args, onLine, cwd) {
  const deadline = Date.now() + patience;
  let repaired = false;
  for (;;) {
    try {
      // dpkg's lock is waited for by apt itself; those of the lists and the archive are not.
      return await run("apt-get", ["-o", "DPkg::Lock::Timeout=900", "-o", "Acquire::Retries=3", ...args], {
        cwd,
        env: { DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C.UTF-8" },
        onLine,
      });
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      if (/Could not get lock|Unable to (acquire|lock)/.test(error.output) && Date.now() < deadline) {
        onLine?.("waiting for another apt-get …");
        await sleep(2000);
      } else if (/dpkg was interrupted|Unmet dependencies|unmet dependencies/.test(error.output) && !repaired) {
        repaired = true;
        onLine?.("finishing an interrupted installation …");
        await run("dpkg", ["--configure", "-a", "--force-confdef"], { env: { DEBIAN_FRONTEND: "noninteractive" } });
        await aptGet(["install", "-y", "--fix-broken"], onLine);
      } else {
        throw error;
      }
    }
  }
}

/**
 * @param {string[]} packages
 * @param {(line: string) => void} [onLine]
 */
export async function aptInstall(packages, onLine) {
  await aptGet(["update"], onLine);
  await aptGet(["install", "-y", "--no-install-recommends", ...packages], onLine);
}

/**
 * Whether a file belongs to an installed package.
 * @param {string} file
 */
export async function isPackaged(file) {
  try {
    await run("dpkg", ["--search", file]);
    return true;
  } catch {
    return false;
  }
}

/** The Debian mirror that this machine is configured to use. */
export async function debianMirror() {
  const list = () => run("apt-get", ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
  const find = (/** @type {string} */ text) => text.split("\n").find((uri) => /\/debian\/?$/.test(uri));
  const known = find(await list());
  if (known) return known;
  await aptGet(["update"]); // The lists that name the mirror.
  const mirror = find(await list());
  if (!mirror) throw new Error("no Debian mirror is configured on this machine (see /etc/apt/sources.list)");
  return mirror;
}
