import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The repository's root, with a slash at its end. */
export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Runs a module's text in a process of its own, where "lookback" is this package, and gives what it printed as JSON. */
export const inProcess = (script: string, ...flags: string[]): unknown =>
  JSON.parse(
    execFileSync(process.execPath, [...flags, "--input-type=module", "-e", script], { encoding: "utf8", cwd: ROOT }),
  );
