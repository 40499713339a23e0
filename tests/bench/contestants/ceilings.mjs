/** The machine itself: wasm/ceilings.cpp, instantiated without a glue. */
import { unitOf, workOf } from "../core/workloads.mjs";

/** @typedef {import("../core/types.ts").Workload} Workload */

const CHAINS = [8, 10, 12, 13, 14];
const STREAMS = [1, 2, 4];
const PAGE = 65536;
/** About 0.1 ms: long for a call, short for a function that is to be called often. */
const ITERATIONS = 50_000;
/** Of two threads: a few milliseconds, beside which telling each other takes no time. */
const CALLS_OF_TWO = 40;
/** Milliseconds. */
const PATIENCE = 10_000;

/**
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => number} chain_state
 * @property {(chains: number, iterations: number, a: number, b: number) => number} multiply_add
 * @property {() => number} tile_operands
 * @property {(iterations: number, factors: number) => void} multiply_add_tile
 * @property {(data: number, bytes: number, streams: number) => number} read_memory
 * @property {() => void} [_initialize]
 */

/** @type {import("../core/types.ts").ContestantModule["open"]} */
export async function open({ variant, threads = 1 }, env) {
  const bytes = await env.bytes(`build/wasm-${variant}/bench/ceilings.wasm`);
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const wasm = /** @type {Exports} */ (/** @type {unknown} */ (instance.exports));
  wasm._initialize?.();
  return {
    prepare(workload) {
      if (unitOf(workload) === "GB/s") return reading(wasm, workOf(workload).bytes);
      return threads > 1 ? both(multiplyAdd(wasm), { bytes, variant, workload }) : multiplyAdd(wasm);
    },
  };
}

/**
 * What two cores do at once: less than twice what one does where they share something, be it with each other or with those for whom the
 * machine works besides. Node.js only.
 * @param {{ call: () => unknown, work: import("../core/types.ts").Work }} own
 * @param {{ bytes: Uint8Array, variant: unknown, workload: Workload }} task
 */
async function both({ call, work }, task) {
  const { Worker } = await import("node:worker_threads");
  const turn = new Int32Array(new SharedArrayBuffer(4));
  const workerData = { ...task, turn, calls: CALLS_OF_TWO };
  const partner = new Worker(new URL("./ceiling-partner.mjs", import.meta.url), { workerData });
  const ready = () => {
    if (Atomics.wait(turn, 0, 1, PATIENCE) === "timed-out") throw new Error("the other thread does not answer");
  };
  await new Promise((resolve, reject) => {
    partner.once("message", () => resolve(undefined));
    partner.once("error", reject);
  });
  partner.unref();
  return {
    call() {
      Atomics.store(turn, 0, 1);
      Atomics.notify(turn, 0);
      for (let n = 0; n < CALLS_OF_TWO; ++n) call();
      ready();
    },
    work: { operations: 2 * CALLS_OF_TWO * work.operations, bytes: 0 },
    dispose: () => void partner.terminate(),
  };
}

/** @param {Exports} wasm */
function multiplyAdd(wasm) {
  new Float32Array(wasm.memory.buffer, wasm.chain_state(), 64).forEach((_, n, state) => {
    state[n] = n / 64;
  });
  const factors = wasm.tile_operands();
  // Of both signs, so that sums stay where they are; the first four serve as factors too.
  new Float32Array(wasm.memory.buffer, factors, 256).forEach((_, n, x) => {
    x[n] = n & 8 ? 0.5 : -0.5;
  });
  const shapes = [
    ...CHAINS.map((chains) => ({
      sums: chains,
      // s = s·a + b goes to b / (1 − a) = 1: neither overflow nor denormal numbers slow it down.
      call: () => wasm.multiply_add(chains, ITERATIONS, 0.999, 0.001),
    })),
    { sums: 8, call: () => wasm.multiply_add_tile(ITERATIONS, factors) },
  ];
  const { sums, call } = fastest(shapes, ({ sums, call }) => [call, 1 / sums], 30);
  return { call, work: { operations: 8 * sums * ITERATIONS, bytes: 0 } };
}

/**
 * @param {Exports} wasm
 * @param {number} size
 */
function reading(wasm, size) {
  const bytes = Math.ceil(size / 512) * 512;
  const first = wasm.memory.buffer.byteLength;
  wasm.memory.grow(Math.ceil(bytes / PAGE));
  // Memory that was never written is one page of zeros, again and again.
  new Float32Array(wasm.memory.buffer, first, bytes / 4).fill(1);
  const streams = fastest(
    STREAMS,
    (streams) => [() => wasm.read_memory(first, bytes, streams), 1],
    Math.ceil(2e8 / bytes),
  );
  return { call: () => wasm.read_memory(first, bytes, streams), work: { operations: bytes / 4, bytes } };
}

/**
 * The fastest of some shapes, each first called until it is optimised; `of` gives what to call and what its time counts.
 * @template Shape
 * @param {readonly Shape[]} shapes
 * @param {(shape: Shape) => readonly [call: () => unknown, weight: number]} of
 * @param {number} times
 */
function fastest(shapes, of, times) {
  const best = shapes.map((shape) => {
    const [call, weight] = of(shape);
    let least = Number.POSITIVE_INFINITY;
    for (let n = 0; n < 3 * times; ++n) {
      const before = performance.now();
      call();
      if (n >= times) least = Math.min(least, performance.now() - before);
    }
    return least * weight;
  });
  return /** @type {Shape} */ (shapes[best.indexOf(Math.min(...best))]);
}
