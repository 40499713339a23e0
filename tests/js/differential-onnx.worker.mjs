/**
 * Runs ONNX graphs in onnxruntime-web, outside of Jest's realm (inside it the runtime's brand checks fail), one thread. A message
 * in is {model, feeds: {name: {type, data, dims}}, outputs: [name]}, one back {tensors} or {error}; sessions are kept per graph key.
 */
import { parentPort } from "node:worker_threads";
import * as ort from "onnxruntime-web";

ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";

const sessions = new Map();

async function run({ key, model, feeds, outputs }) {
  if (!sessions.has(key)) sessions.set(key, await ort.InferenceSession.create(model, { logSeverityLevel: 3 }));
  const tensors = {};
  for (const [name, { type, data, dims }] of Object.entries(feeds)) tensors[name] = new ort.Tensor(type, data, dims);
  const results = await sessions.get(key).run(tensors, outputs);
  return Object.fromEntries(outputs.map((name) => [name, { data: results[name].data, dims: results[name].dims }]));
}

let last = Promise.resolve();
parentPort.on("message", (message) => {
  last = last.then(async () => {
    try {
      parentPort.postMessage({ id: message.id, tensors: await run(message) });
    } catch (error) {
      parentPort.postMessage({ id: message.id, error: String(error?.message ?? error) });
    }
  });
});
