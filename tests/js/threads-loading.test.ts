/** B5: how many threads there are, what is said where there is only one, and how they end. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { expectAlive, expectError, rejected } from "./support/helpers.js";
import { inProcess, ROOT } from "./support/process.js";

const entry = pathToFileURL(join(ROOT, "dist/node.js")).href;
const wasm = (name: string) => readFileSync(join(ROOT, `dist/wasm/lookback-${name}.wasm`));

/** What a script that may change globals first says of an instance with these threads. */
const startedAfter = (before: string, threads: number | "auto") =>
  inProcess(`
    import { createRequire } from "node:module";
    ${before}
    const { createLookback } = await import(${JSON.stringify(entry)});
    const lb = await createLookback({ threads: ${JSON.stringify(threads)} }).catch((error) => error);
    console.log(JSON.stringify({ threads: lb.threads, reason: lb.threadsReason, code: lb.code, message: lb.message }));
    lb.dispose?.();`) as { threads?: number; reason?: string; code?: string; message?: string };

const alive = (lb: Lookback, threads: number, reason?: string) => {
  expect([lb.threads, lb.threadsReason]).toEqual([threads, reason]);
  expectAlive(lb);
  lb.dispose();
};

test("B5: one thread unless asked, and then as many as asked", async () => {
  alive(await createLookback(), 1);
  alive(await createLookback({ threads: 1 }), 1);
  alive(await createLookback({ threads: 3 }), 3);
});

test("B5: 'auto' takes the processors there are, up to 8, and says why there is only one", () => {
  const processors = (count: number) =>
    `createRequire(import.meta.url)("node:os").availableParallelism = () => ${count}; createRequire(import.meta.url)("node:module").syncBuiltinESMExports();`;
  expect(startedAfter(processors(3), "auto")).toEqual({ threads: 3 });
  expect(startedAfter(processors(40), "auto")).toEqual({ threads: 8 });
  expect(startedAfter(processors(1), "auto")).toEqual({ threads: 1, reason: "one processor" });
});

test("B5: a page that is not isolated has one thread with 'auto', which says which headers it lacks; a number is refused", () => {
  const page = "globalThis.crossOriginIsolated = false;";
  const auto = startedAfter(page, "auto");
  expect(auto.threads).toBe(1);
  for (const shown of ["not cross-origin isolated", "Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy"])
    expect(auto.reason).toContain(shown);
  const two = startedAfter(page, 2);
  expect(two.code).toBe("threads-unsupported");
  for (const shown of ["threads 2", "not cross-origin isolated", "'auto'"]) expect(two.message).toContain(shown);
});

test("B5: an engine without shared memory has one thread with 'auto'", () => {
  const engine =
    "const Own = WebAssembly.Memory; WebAssembly.Memory = function (type) { if (type.shared) throw new TypeError('shared'); return new Own(type); };";
  expect(startedAfter(engine, "auto")).toEqual({ threads: 1, reason: "this engine has no shared WebAssembly memory" });
});

test("B5: workers that do not start leave 'auto' with one thread and the cause; a number is refused; the next start works", () => {
  const refusing = `const threads = createRequire(import.meta.url)("node:worker_threads");
    const Own = threads.Worker;
    threads.Worker = class { constructor() { threads.Worker = Own; throw new Error("no more workers"); } };`;
  expect(startedAfter(refusing, "auto")).toEqual({ threads: 1, reason: expect.stringContaining("no more workers") });
  const number = startedAfter(refusing, 2);
  expect(number.code).toBe("threads-unsupported");
  expect(number.message).toContain("no more workers");
  const failing = `const threads = createRequire(import.meta.url)("node:worker_threads");
    const Own = threads.Worker;
    threads.Worker = class extends Own { constructor() { super("throw new Error('broken worker')", { eval: true }); } };`;
  const again = inProcess(`
    import { createRequire } from "node:module";
    ${failing}
    const { createLookback } = await import(${JSON.stringify(entry)});
    const first = await createLookback({ threads: 2 }).catch((error) => error);
    threads.Worker = Own;
    const second = await createLookback({ threads: 2, variant: "simd" });
    console.log(JSON.stringify([first.code, first.message, second.threads]));`) as [string, string, number];
  expect(again[0]).toBe("threads-unsupported");
  expect(again[1]).toContain("broken worker");
});

test("B5: a number that no pool has is refused", async () => {
  for (const threads of [0, -1, 1.5, 65, "2", Number.NaN, true]) {
    const error = await rejected(createLookback({ threads: threads as number }));
    expectError(error, "bad-option", "threads", String(threads), "from 1 to 64", "'auto'");
  }
});

test("B5: a wasm file of one's own decides whether there are threads", async () => {
  alive(await createLookback({ variant: "simd", wasmBinary: wasm("simd-threads"), threads: 2 }), 2);
  const auto = await createLookback({ variant: "simd", wasmBinary: wasm("simd"), threads: "auto" });
  expect(auto.threadsReason).toMatch(/the given wasm has no threads|one processor/);
  auto.dispose();
  const plain = await rejected(createLookback({ variant: "simd", wasmBinary: wasm("simd"), threads: 2 }));
  expectError(plain, "threads-unsupported", "threads 2", "has no threads");
  const threaded = await rejected(createLookback({ variant: "simd", wasmBinary: wasm("simd-threads") }));
  expectError(threaded, "wasm-invalid", "the wasm with threads", "one thread");
});

test("B5: a function is told whether the wasm is to have threads", async () => {
  const asked: unknown[] = [];
  const wasmUrl = (variant: string, threaded: boolean) => {
    asked.push([variant, threaded]);
    return join(ROOT, `dist/wasm/lookback-${variant}${threaded ? "-threads" : ""}.wasm`);
  };
  alive(await createLookback({ variant: "simd", wasmUrl, threads: 2 }), 2);
  alive(await createLookback({ variant: "simd", wasmUrl }), 1);
  expect(asked).toEqual([
    ["simd", true],
    ["simd", false],
  ]);
});

test("B3: dispose() ends the workers, and so does forgetting; neither they nor their start add a global", () => {
  const script = `
    import { createRequire } from "node:module";
    const threads = createRequire(import.meta.url)("node:worker_threads");
    let living = 0;
    const Own = threads.Worker;
    threads.Worker = class extends Own {
      constructor(...given) { super(...given); living++; this.on("exit", () => living--); }
    };
    const { createLookback } = await import(${JSON.stringify(entry)});
    const before = Reflect.ownKeys(globalThis).length;
    const seen = [];
    const settled = async (count) => { for (let i = 0; i < 200 && living !== count; i++) { globalThis.gc(); await new Promise((r) => setTimeout(r, 10)); } return living; };
    let lb = await createLookback({ threads: 3 });
    seen.push(living);
    lb.dispose();
    seen.push(await settled(0));
    lb = await createLookback({ threads: 2 });
    seen.push(living);
    lb = undefined;
    seen.push(await settled(0));
    console.log(JSON.stringify({ seen, added: Reflect.ownKeys(globalThis).length - before }));`;
  expect(inProcess(script, "--expose-gc")).toEqual({ seen: [2, 0, 1, 0], added: 0 });
});
