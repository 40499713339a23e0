/** Running other programs. */
import { execa } from "execa";

/**
 * Runs a program; its output is kept, and shown when it fails.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: Record<string, string>, onLine?: (line: string) => void }} [options]
 * @returns {Promise<string>}
 */
export async function run(command, args, { cwd, env, onLine } = {}) {
  const child = execa(command, args, { cwd, env, stdin: "ignore", all: true, reject: false });
  if (onLine) {
    for await (const line of child.iterable({ from: "all" })) onLine(String(line));
  }
  const result = await child;
  if (result.failed) {
    const tail = (result.all ?? "").split("\n").slice(-60).join("\n").trim();
    throw new CommandError(`${command} ${args.join(" ")}`, tail || (result.shortMessage ?? "failed"));
  }
  return result.stdout ?? "";
}

export class CommandError extends Error {
  /**
   * @param {string} command
   * @param {string} output
   */
  constructor(command, output) {
    super(`${command}\n${output}`);
    this.name = "CommandError";
    this.output = output;
  }
}

/** Something the user can act on: shown as this one message, without a stack. */
export class Advice extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "Advice";
  }
}

/** A failure that was shown already. */
export class Failed extends Error {
  constructor() {
    super("");
    this.name = "Failed";
  }
}

/**
 * Shows a program's lines one after another in the place of a task's progress; a log file would only be filled by them.
 * @param {{ output: string | undefined }} task
 * @returns {((line: string) => void) | undefined}
 */
export function progressOf(task) {
  if (!process.stdout.isTTY) return undefined;
  return (line) => {
    task.output = line;
  };
}
