/** onnxruntime-node: native code with the widest instructions of the CPU, one thread. */
import { load } from "../peers/load.mjs";
import { sessionOf } from "./onnxruntime.mjs";

/** @type {import("../core/types.ts").ContestantModule["open"]} */
export async function open(_, env) {
  const { default: ort } = await load("onnxruntime-node");
  return sessionOf(ort, env, { executionProviders: ["cpu"], intraOpNumThreads: 1, interOpNumThreads: 1 });
}
