/** The benchmark's surroundings in Node. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { onnxModel } from "./onnx-model.mjs";

/**
 * @param {(contestant: string) => void} entering
 * @returns {import("../core/types.ts").Environment}
 */
export function nodeEnvironment(entering) {
  const collect = /** @type {undefined | (() => void)} */ (Reflect.get(globalThis, "gc"));
  return {
    bytes: async (path) => new Uint8Array(await readFile(fileURLToPath(new URL(`../../../${path}`, import.meta.url)))),
    model: async (workload, inputs) => onnxModel(workload, inputs),
    cpu: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
    ...(collect && { collectGarbage: () => collect() }),
    entering,
  };
}
