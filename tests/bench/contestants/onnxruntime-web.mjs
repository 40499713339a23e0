/** onnxruntime-web on its wasm backend, one thread. */
import { load } from "../peers/load.mjs";
import { sessionOf } from "./onnxruntime.mjs";

/** @type {import("../core/types.ts").ContestantModule["open"]} */
export async function open(_, env) {
  const ort = await load("onnxruntime-web");
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  return sessionOf(ort, env, { executionProviders: ["wasm"] });
}
