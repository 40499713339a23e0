/** A process of its own for a case: no case runs in what another left behind. Answers by messages: {entering}, then {rows}. */
import { contestants } from "../contestants/list.mjs";
import { runCase } from "../core/run-case.mjs";
import { nodeEnvironment } from "./environment.mjs";

/**
 * @typedef {object} Task
 * @property {import("../core/types.ts").Workload[]} workloads
 * @property {string[]} contestants
 * @property {import("../core/types.ts").Settings} settings
 * @property {[contestant: string, reason: string][]} excluded
 */

const send = (/** @type {object} */ message) => process.send?.(message);

process.once("message", async (/** @type {Task} */ task) => {
  const env = nodeEnvironment((contestant) => send({ entering: contestant }));
  const chosen = contestants.filter(({ id }) => task.contestants.includes(id));
  const rows = await runCase(task.workloads, chosen, env, task.settings, new Map(task.excluded));
  // Runtimes keep threads and timers; what was wanted has been said.
  process.send?.({ rows }, () => process.exit(0));
});
