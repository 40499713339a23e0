/** What is measured besides calculations: memory of a long call, sizes of what is shipped, time of the first start. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../../bindings/toolchain/paths.mjs";
import { inputsOf } from "../core/inputs.mjs";
import { reasonOf } from "../core/run-case.mjs";
import { cases } from "../core/workloads.mjs";
import { spreadOf } from "../report/summarise.mjs";
import { bundled } from "./bundle.mjs";
import { ask } from "./child.mjs";
import { onnxModel } from "./onnx-model.mjs";

/** @typedef {import("../core/types.ts").SizeReport} SizeReport */
/** @typedef {import("../core/types.ts").StartReport} StartReport */
/** @typedef {import("../core/types.ts").MemoryReport} MemoryReport */

/**
 * @param {string} node
 * @param {boolean} quick
 * @returns {Promise<MemoryReport[]>}
 */
export async function memory(node, quick) {
  const length = quick ? 2048 : 16384;
  const reports = [];
  for (const variant of /** @type {const} */ (["simd", "relaxed"])) {
    try {
      const { extraBytes } = /** @type {{ extraBytes: number }} */ (
        await ask(node, "memory-process.mjs", { variant, length })
      );
      reports.push({ variant, length, extraBytes });
    } catch (error) {
      reports.push({ variant, length, reason: reasonOf(error) });
    }
  }
  return reports;
}

/** @returns {Promise<SizeReport[]>} */
export async function sizes() {
  const dist = join(root, "dist");
  const wasmFolder = join(dist, "wasm");
  const files = readdirSync(wasmFolder).sort();
  const compact = /** @type {const} */ ("minified and gzipped");
  /** @type {SizeReport[]} */
  const found = files
    .filter((name) => name.endsWith(".wasm"))
    .map((name) => ({ name, group: "wasm", bytes: statSync(join(wasmFolder, name)).size, how: "raw" }));
  for (const entry of ["web.js", "node.js"])
    found.push({ name: entry, group: "typescript", bytes: (await bundled(join(dist, entry))).bytes, how: compact });
  for (const name of files.filter((file) => /\.m?js$/.test(file)))
    found.push({
      name,
      group: /thread/.test(name) ? "threaded glue" : "glue",
      bytes: (await bundled(join(wasmFolder, name))).bytes,
      how: compact,
    });
  return found;
}

/**
 * @param {string} node
 * @param {boolean} quick
 * @returns {Promise<StartReport[]>}
 */
export async function start(node, quick) {
  const folder = mkdtempSync(join(tmpdir(), "lookback-bench-"));
  const model = join(folder, "attention.onnx");
  const workload = cases.find(({ id }) => id === "causal-128")?.workloads[0];
  if (!workload) throw new Error("there is no case causal-128");
  writeFileSync(model, onnxModel(workload, inputsOf(workload)));
  const names = /** @type {const} */ (["lookback", "onnxruntime-web"]);
  const times = names.map(() => /** @type {{ call: number, withImport: number }[]} */ ([]));
  const reasons = names.map(() => /** @type {string | undefined} */ (undefined));
  try {
    for (let round = 0; round < (quick ? 3 : 11); ++round)
      for (const [n, contestant] of names.entries()) {
        if (reasons[n] !== undefined) continue;
        try {
          times[n]?.push(await ask(node, "start-process.mjs", { contestant, model }));
        } catch (error) {
          reasons[n] = reasonOf(error);
        }
      }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return names.map((contestant, n) => {
    const reason = reasons[n];
    if (reason !== undefined) return { contestant, reason };
    const own = times[n] ?? [];
    return {
      contestant,
      call: spreadOf(own.map(({ call }) => call)),
      withImport: spreadOf(own.map(({ withImport }) => withImport)),
    };
  });
}
