/** The other core's half of a ceiling for two threads: calculates whenever it is told to. */
import { parentPort, workerData } from "node:worker_threads";
import { open } from "./ceilings.mjs";

const { bytes, variant, workload, turn, calls } =
  /** @type {{ bytes: Uint8Array, variant: "simd" | "relaxed", workload: import("../core/types.ts").Workload, turn: Int32Array, calls: number }} */ (
    workerData
  );
const env = /** @type {import("../core/types.ts").Environment} */ (
  /** @type {unknown} */ ({ bytes: async () => bytes })
);
const session = await open({ id: "partner", role: "ceiling", variant, load: () => import("./ceilings.mjs") }, env);
const { call } = await session.prepare(workload, /** @type {never} */ (undefined));

// 0: ready; 1: calculate.
Atomics.store(turn, 0, 0);
parentPort?.postMessage("ready");
for (;;) {
  Atomics.wait(turn, 0, 0);
  for (let n = 0; n < calls; ++n) call();
  Atomics.store(turn, 0, 0);
  Atomics.notify(turn, 0);
}
