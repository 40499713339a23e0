/** The command `lookback`, run as a user runs it. */
import { join } from "node:path";
import { execa } from "execa";
import { ROOT } from "./process.ts";

const COMMAND = join(ROOT, "dist/cli/lookback.js");
const ENV = { NO_COLOR: "1", COLUMNS: "100", LANG: "C.UTF-8", TERM: "xterm-256color" };

/** With options of Node.js before it. */
export const lookbackWith = (flags: readonly string[], ...args: string[]) =>
  execa(process.execPath, [...flags, COMMAND, ...args], { env: ENV, reject: false, stripFinalNewline: false });

export const lookback = (...args: string[]) => lookbackWith([], ...args);
