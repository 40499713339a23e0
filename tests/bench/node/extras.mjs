/** What is measured besides calculations: memory of a long call, sizes of what is shipped, time of the first start. */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "rolldown";
import { root } from "../../../bindings/toolchain/paths.mjs";
import { inputsOf } from "../core/inputs.mjs";
import { reasonOf } from "../core/run-case.mjs";
import { cases } from "../core/workloads.mjs";
import { spreadOf } from "../report/summarise.mjs";
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
    found.push({ name: entry, group: "typescript", bytes: await compressed(join(dist, entry)), how: compact });
  for (const name of files.filter((file) => /\.m?js$/.test(file)))
    found.push({
      name,
      group: /thread/.test(name) ? "threaded glue" : "glue",
      bytes: await compressed(join(wasmFolder, name)),
      how: compact,
    });
  return found;
}

/**
 * What a page loads of a module at its import: everything that is imported statically, in one file. The glue is loaded when an instance is made,
 * and so is whatever else is imported only when it is called for.
 * @param {string} input
 */
async function compressed(input) {
  const { output } = await build({
    input,
    write: false,
    logLevel: "silent",
    platform: "browser",
    external: (id) => id !== input && (id.startsWith("node:") || /^[\w@]|\/wasm\//.test(id)),
    output: { minify: true, format: "esm" },
  });
  const chunks = new Map(output.flatMap((chunk) => (chunk.type === "chunk" ? [[chunk.fileName, chunk]] : [])));
  const wanted = new Set([...chunks.values()].flatMap((chunk) => (chunk.isEntry ? [chunk.fileName] : [])));
  // A set that grows while it is walked: what is imported by what is imported.
  for (const name of wanted) for (const next of chunks.get(name)?.imports ?? []) if (chunks.has(next)) wanted.add(next);
  return [...wanted].reduce((sum, name) => sum + gzipSync(chunks.get(name)?.code ?? "", { level: 9 }).length, 0);
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
