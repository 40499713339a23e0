/** B6: a worker and the process around it: crashes, forgotten objects, the end. */
import { expect, test } from "@jest/globals";
import { inProcess } from "./support/process.ts";

test("B6: when the worker crashes every call that waits is rejected, and so is every later one", () => {
  const script = `
    import threads from "node:worker_threads";
    import { syncBuiltinESMExports } from "node:module";
    let started;
    threads.Worker = class extends threads.Worker {
      constructor(...given) { super(...given); started = this; }
    };
    syncBuiltinESMExports();
    const { createLookbackWorker } = await import("lookback/worker");
    const worker = await createLookbackWorker();
    const x = { data: new Float32Array(4096 * 256), dims: [4096, 256] };
    const calls = [worker.attention(x, x, x, { heads: 4 }), worker.memory()];
    started.terminate();
    const outcomes = await Promise.allSettled(calls);
    outcomes.push(...(await Promise.allSettled([worker.memory()])));
    console.log(JSON.stringify(outcomes.map(({ status, reason }) => [status, reason?.name, reason?.code, reason?.message])));`;
  const seen = inProcess(script) as string[][];
  expect(seen).toHaveLength(3);
  for (const [status, name, code, message] of seen) {
    expect([status, name, code]).toEqual(["rejected", "LookbackError", "worker-failed"]);
    expect(message).toContain("thread has stopped");
  }
});

test("B6: an idle worker keeps no process alive, a call does", () => {
  const script = `
    import { createLookbackWorker } from "lookback/worker";
    const worker = await createLookbackWorker();
    const x = { data: new Float32Array(16), dims: [4, 4] };
    worker.attention(x, x, x, { heads: 1 }).then(({ output }) => console.log(JSON.stringify(output.dims)));`;
  expect(inProcess(script)).toEqual([4, 4]);
});

test("B3, B6: the memory of forgotten objects comes back in the end", () => {
  const script = `
    import { createLookbackWorker } from "lookback/worker";
    const worker = await createLookbackWorker();
    for (let i = 0; i < 5; i++) await worker.tensor(null, [100]);
    const kept = await worker.tensor(null, [100]);
    const before = (await worker.memory()).allocations;
    let after = before;
    for (let round = 0; round < 50 && after > 1; round++) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
      after = (await worker.memory()).allocations;
    }
    console.log(JSON.stringify([before, after, kept.disposed]));
    worker.dispose();`;
  expect(inProcess(script, "--expose-gc")).toEqual([6, 1, false]);
});
