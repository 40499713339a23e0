/** The first moments of a fresh process: how long until the first instance, or the first session, is there. */
import { readFileSync } from "node:fs";
import { load } from "../peers/load.mjs";

/** @typedef {{ contestant: "lookback" | "onnxruntime-web", model: string }} Task */

/** @type {Record<Task["contestant"], (model: Uint8Array) => Promise<() => Promise<unknown>>>} */
const importers = {
  async lookback() {
    const { createLookback } = await import("lookback");
    return () => createLookback();
  },
  async "onnxruntime-web"(model) {
    const ort = await load("onnxruntime-web");
    ort.env.wasm.numThreads = 1;
    return () => ort.InferenceSession.create(model, { logSeverityLevel: 3 });
  },
};

process.once("message", async (/** @type {Task} */ { contestant, model }) => {
  const bytes = new Uint8Array(readFileSync(model));
  const begin = performance.now();
  const start = await importers[contestant](bytes);
  const imported = performance.now();
  await start();
  const end = performance.now();
  process.send?.({ call: end - imported, withImport: end - begin }, () => process.exit(0));
});
