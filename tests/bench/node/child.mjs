/** Starting the benchmark's own processes. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** @typedef {import("../core/types.ts").RawRow} RawRow */
/** @typedef {import("./case-process.mjs").Task} Task */

const LONGEST = 15 * 60_000;

/**
 * Runs a file of this folder under a Node, sends it a task and waits for its last message.
 * @template Answer
 * @param {string} node
 * @param {string} file
 * @param {unknown} task
 * @param {(message: any) => void} [onMessage] every message, the last included
 * @returns {Promise<Answer>}
 */
export function ask(node, file, task, onMessage = () => {}) {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), [], {
      execPath: node,
      execArgv: ["--expose-gc", "--no-warnings"],
      // What runtimes print would break the table.
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    let complaints = "";
    child.stderr?.on("data", (data) => {
      complaints = `${complaints}${data}`.slice(-4000);
    });
    const timer = setTimeout(() => child.kill("SIGKILL"), LONGEST);
    /** @type {unknown} */
    let answer;
    child.on("message", (message) => {
      onMessage(message);
      answer = message;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(/** @type {Answer} */ (answer));
      else reject(new Error(lastWords(complaints) ?? `ended by ${signal ?? `exit code ${code}`}`));
    });
    child.send(/** @type {import("node:child_process").Serializable} */ (task));
  });
}

/** @param {string} complaints */
function lastWords(complaints) {
  const lines = complaints.split("\n").map((line) => line.trim());
  return lines.find((line) => /^(\w*Error|FATAL)\b/.test(line));
}

/**
 * A case; a contestant that takes its process down is left out of the next try.
 * @param {string} node
 * @param {Omit<Task, "excluded">} task
 * @returns {Promise<RawRow[]>}
 */
export async function runCaseApart(node, task) {
  /** @type {Map<string, string>} */
  const excluded = new Map();
  for (;;) {
    let entered = "";
    try {
      const { rows } = /** @type {{ rows: RawRow[] }} */ (
        await ask(node, "case-process.mjs", { ...task, excluded: [...excluded] }, (message) => {
          if (message.entering !== undefined) entered = message.entering;
        })
      );
      return rows;
    } catch (error) {
      // While all are timed in turns nobody can be named.
      if (entered === "" || excluded.has(entered)) throw error;
      excluded.set(entered, `its process ended: ${error instanceof Error ? error.message : error}`);
    }
  }
}
