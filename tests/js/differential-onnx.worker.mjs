/**
 * Runs ONNX graphs in onnxruntime-web, outside of Jest's realm (inside it the runtime's brand checks fail), in one thread.
 * Every message is answered by one with its id: {tensors} or {error}. Sessions are kept per graph.
 */
import { parentPort } from "node:worker_threads";
import * as ort from "onnxruntime-web";

/**
 * @typedef {{ dtype: "f32" | "bool" | "i64", data: ArrayLike<number>, dims: number[] }} Feed
 * @typedef {{ id: number, key: string, model: Uint8Array, feeds: Record<string, Feed>, outputs: string[] }} Message
 */

ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

/** @type {Map<string, ort.InferenceSession>} */
const sessions = new Map();

/** @param {Message} message */
async function run({ key, model, feeds, outputs }) {
  // The runtime warns of every shape that its inference left open; those are not errors.
  const session = sessions.get(key) ?? (await ort.InferenceSession.create(model, { logSeverityLevel: 3 }));
  sessions.set(key, session);
  const tensors = Object.fromEntries(
    Object.entries(feeds).map(([name, { dtype, data, dims }]) => [
      name,
      dtype === "f32"
        ? new ort.Tensor("float32", Float32Array.from(data), dims)
        : dtype === "i64"
          ? new ort.Tensor("int64", BigInt64Array.from(Array.from(data, BigInt)), dims)
          : new ort.Tensor("bool", Uint8Array.from(data), dims),
    ]),
  );
  const results = await session.run(tensors, outputs);
  return Object.fromEntries(Object.entries(results).map(([name, { data, dims }]) => [name, { data, dims }]));
}

const port = /** @type {import("node:worker_threads").MessagePort} */ (parentPort);
let last = Promise.resolve();
port.on("message", (/** @type {Message} */ message) => {
  last = last.then(async () => {
    try {
      port.postMessage({ id: message.id, tensors: await run(message) });
    } catch (error) {
      port.postMessage({ id: message.id, error: error instanceof Error ? error.message : String(error) });
    }
  });
});
