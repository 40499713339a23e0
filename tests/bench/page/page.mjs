/** The benchmark's surroundings in a page; `runCase` is called from outside, by the browser's driver. */
import { contestants } from "../contestants/list.mjs";
import { runCase } from "../core/run-case.mjs";

/** @param {string} address */
async function bytesAt(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** @type {import("../core/types.ts").Environment} */
const env = {
  bytes: (path) => bytesAt(`/${path}`),
  model: (workload) => bytesAt(`/model?workload=${encodeURIComponent(JSON.stringify(workload))}`),
  entering() {},
};

/** @param {Omit<import("../node/case-process.mjs").Task, "excluded">} task */
async function run({ workloads, contestants: names, settings }) {
  if (!globalThis.crossOriginIsolated) throw new Error("the page is not cross-origin isolated");
  const chosen = contestants.filter(({ id, browser }) => browser && names.includes(id));
  return runCase(workloads, chosen, env, settings);
}

Reflect.set(globalThis, "runCase", run);
