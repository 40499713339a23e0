/** B5: how an instance starts, and what is said where it cannot. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createLookback, type LookbackOptions, type Variant } from "lookback";
import { expectAlive, expectError, rejected } from "./support/helpers.js";
import { inProcess, ROOT } from "./support/process.js";

const entry = pathToFileURL(join(ROOT, "dist/node.js")).href;
const wasmPath = (variant: Variant) => join(ROOT, `dist/wasm/lookback-${variant}.wasm`);
const simd = readFileSync(wasmPath("simd"));
// The text form of this probe is (func (param v128) (result v128) local.get 0 local.get 0 local.get 0 f32x4.relaxed_madd).
const hasRelaxed = WebAssembly.validate(
  Buffer.from("0061736d010000000106016001 7b017b 03020100 0a0d010b00 200020002000fd85020b".replaceAll(" ", ""), "hex"),
);

const folder = mkdtempSync(join(tmpdir(), "lookback loading "));
let server: Server;
let origin = "";
let requests: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    requests.push(request.url ?? "");
    const html = "<!DOCTYPE html><title>Not found</title>";
    if (request.url === "/octets.wasm") response.setHeader("content-type", "application/octet-stream").end(simd);
    else if (request.url === "/right.wasm") response.setHeader("content-type", "application/wasm").end(simd);
    else if (request.url === "/typeless.wasm") response.end(simd);
    else if (request.url === "/fallback.wasm") response.setHeader("content-type", "text/html").end(html);
    else if (request.url === "/disguised.wasm")
      response.setHeader("content-type", "application/wasm").end(`\n ${html}`);
    else if (request.url === "/text.wasm")
      response.setHeader("content-type", "text/plain").end("version https://git-lfs");
    else response.writeHead(404, { "content-type": "text/html" }).end(html);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await new Promise((done) => server.close(done));
  rmSync(folder, { recursive: true });
});

async function works(options: LookbackOptions): Promise<void> {
  const lb = await createLookback(options);
  expectAlive(lb);
  lb.dispose();
}

describe("the choice of the variant", () => {
  test("B5: auto is relaxed where the engine has it, and lb.variant says so", async () => {
    const lb = await createLookback();
    expect(lb.variant).toBe(hasRelaxed ? "relaxed" : "simd");
    expect(typeof lb.fused).toBe("boolean");
    if (lb.variant === "simd") expect(lb.fused).toBe(false);
    lb.dispose();
    const explicit = await createLookback({ variant: "simd" });
    expect([explicit.variant, explicit.fused]).toEqual(["simd", false]);
    explicit.dispose();
  });

  test("B5: relaxed without relaxed SIMD is an error before anything is fetched", () => {
    const script = `
      const validate = WebAssembly.validate;
      WebAssembly.validate = (bytes) => bytes.length < 60 && [...bytes].join().includes("253,133,2") ? false : validate(bytes);
      let fetched = 0;
      globalThis.fetch = () => { fetched++; };
      const { createLookback } = await import(${JSON.stringify(entry)});
      const error = await createLookback({ variant: "relaxed", wasmUrl: "http://127.0.0.1:1/x.wasm" }).catch((e) => e);
      const { variant } = await createLookback();
      console.log(JSON.stringify({ code: error.code, message: error.message, fetched, variant }));`;
    const seen = inProcess(script) as { code: string; message: string };
    expect(seen).toMatchObject({ code: "relaxed-unsupported", fetched: 0, variant: "simd" });
    for (const shown of ["Chrome 114", "Firefox 146", "'simd'"]) expect(seen.message).toContain(shown);
  });

  test("B5: an engine without SIMD is told the browsers' floors", () => {
    const script = `
      WebAssembly.validate = () => false;
      const { createLookback } = await import(${JSON.stringify(entry)});
      const error = await createLookback().catch((e) => e);
      console.log(JSON.stringify({ code: error.code, message: error.message }));`;
    const seen = inProcess(script) as { code: string; message: string };
    expect(seen.code).toBe("simd-unsupported");
    for (const shown of ["Chrome 91", "Firefox 89", "Safari 16.4", "Node 16.4"]) expect(seen.message).toContain(shown);
  });
});

describe("importing", () => {
  test("B5: an import does nothing: no global, no fetch, no compilation, no file", () => {
    const script = `
      import fs from "node:fs";
      let calls = 0;
      globalThis.fetch = () => { calls++; };
      for (const name of ["compile", "instantiate", "validate", "Module", "Memory"]) {
        const own = WebAssembly[name];
        WebAssembly[name] = new Proxy(own, { apply: (f, t, a) => (calls++, Reflect.apply(f, t, a)), construct: (f, a) => (calls++, new f(...a)) });
      }
      const before = Reflect.ownKeys(globalThis).length + Reflect.ownKeys(Symbol).length;
      await import(${JSON.stringify(entry)});
      console.log(JSON.stringify({ calls, added: Reflect.ownKeys(globalThis).length + Reflect.ownKeys(Symbol).length - before }));`;
    expect(inProcess(script)).toEqual({ calls: 0, added: 0 });
  });

  test("B5: it runs where code from strings is forbidden", () => {
    const script = `
      const { createLookback } = await import(${JSON.stringify(entry)});
      const lb = await createLookback();
      const x = { data: Float32Array.of(1, 2), dims: [1, 2] };
      const layer = lb.multiHeadAttention({ embedDim: 2, heads: 1 });
      layer.forward(x);
      console.log(JSON.stringify([...lb.attention(x, x, x, { heads: 1 }).output.data]));`;
    expect(inProcess(script, "--disallow-code-generation-from-strings")).toEqual([1, 2]);
  });

  test("B5: CommonJS can require it", () => {
    const script = `const { createLookback } = require(${JSON.stringify(join(ROOT, "dist/node.js"))});
      createLookback().then((lb) => console.log(lb.variant));`;
    const printed = execFileSync(process.execPath, ["--no-warnings", "-e", script], { encoding: "utf8" });
    expect(printed.trim()).toBe(hasRelaxed ? "relaxed" : "simd");
  });
});

describe("where the wasm comes from", () => {
  test("B5: wasmUrl as a path, a file URL, an http URL and a function", async () => {
    const odd = join(folder, "a wasm (1).wasm");
    copyFileSync(wasmPath("simd"), odd);
    await works({ variant: "simd", wasmUrl: odd });
    await works({ variant: "simd", wasmUrl: pathToFileURL(odd) });
    await works({ variant: "simd", wasmUrl: pathToFileURL(odd).href });
    await works({ variant: "simd", wasmUrl: `${origin}/right.wasm` });
    const asked: unknown[][] = [];
    const lb = await createLookback({
      wasmUrl: (...names) => {
        asked.push(names);
        return wasmPath(names[0]);
      },
    });
    expect(asked).toEqual([[lb.variant, false]]);
    lb.dispose();
  });

  test("B5: a wrong MIME type, or none, does no harm", async () => {
    await works({ variant: "simd", wasmUrl: `${origin}/octets.wasm` });
    await works({ variant: "simd", wasmUrl: `${origin}/typeless.wasm` });
  });

  test("B5: wasmBinary as bytes, a view and shared memory; wasmModule", async () => {
    const bytes = Uint8Array.from(simd);
    await works({ variant: "simd", wasmBinary: bytes.buffer });
    const larger = new Uint8Array(simd.length + 5);
    larger.set(simd, 5);
    await works({ variant: "simd", wasmBinary: larger.subarray(5) });
    const shared = new Uint8Array(new SharedArrayBuffer(simd.length));
    shared.set(simd);
    await works({ variant: "simd", wasmBinary: shared });
    await works({ variant: "simd", wasmModule: await WebAssembly.compile(bytes) });
  });

  test("B5: HTML in place of wasm is recognised and said", async () => {
    for (const path of ["fallback", "disguised"]) {
      const error = await rejected(createLookback({ variant: "simd", wasmUrl: `${origin}/${path}.wasm` }));
      expectError(error, "wasm-is-html", "HTML", `${origin}/${path}.wasm`, "wasmUrl");
    }
    expectError(
      await rejected(createLookback({ variant: "simd", wasmBinary: Buffer.from("<html>") })),
      "wasm-is-html",
      "wasmBinary",
    );
  });

  test("B5: a file that is missing or no wasm is named", async () => {
    expectError(
      await rejected(createLookback({ variant: "simd", wasmUrl: `${origin}/none.wasm` })),
      "wasm-unreachable",
      "404",
      `${origin}/none.wasm`,
    );
    expectError(
      await rejected(createLookback({ variant: "simd", wasmUrl: join(folder, "none.wasm") })),
      "wasm-unreachable",
      "none.wasm",
      "ENOENT",
    );
    expectError(
      await rejected(createLookback({ variant: "simd", wasmUrl: `${origin}/text.wasm` })),
      "wasm-invalid",
      "version http",
      "text/plain",
    );
    expectError(
      await rejected(createLookback({ variant: "simd", wasmBinary: simd.subarray(0, 1000) })),
      "wasm-invalid",
      "wasmBinary",
      "compile",
    );
    const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
    expectError(
      await rejected(createLookback({ variant: "simd", wasmBinary: empty })),
      "wasm-invalid",
      "version of lookback",
    );
  });

  test("B5: options that contradict or lack something", async () => {
    expectError(
      await rejected(createLookback({ wasmUrl: "x.wasm" })),
      "variant-missing",
      "wasmUrl",
      "'simd' or 'relaxed'",
    );
    expectError(await rejected(createLookback({ variant: "auto", wasmBinary: simd })), "variant-missing", "wasmBinary");
    expectError(
      await rejected(createLookback({ variant: "simd", wasmUrl: "x", wasmBinary: simd })),
      "bad-option",
      "wasmUrl and wasmBinary",
    );
    const loose = createLookback as (options: unknown) => Promise<unknown>;
    expectError(await rejected(loose({ variant: "avx" })), "bad-option", "'auto', 'simd' or 'relaxed'", '"avx"');
    expectError(await rejected(loose({ wasmURL: "x" })), "unknown-option", "wasmURL", "'wasmUrl'");
    expectError(await rejected(loose({ variant: "simd", wasmBinary: "AGFzbQ==" })), "bad-option", "ArrayBuffer");
    expectError(await rejected(loose({ variant: "simd", wasmModule: {} })), "bad-option", "WebAssembly.Module");
    expectError(await rejected(loose("simd")), "bad-option", '"simd"');
  });
});

describe("starting more than once", () => {
  test("B5: a failed start can be retried", async () => {
    const path = join(folder, "late.wasm");
    expectError(await rejected(createLookback({ variant: "simd", wasmUrl: path })), "wasm-unreachable");
    writeFileSync(path, simd);
    await works({ variant: "simd", wasmUrl: path });
  });

  test("B5: the package's own wasm is read again after a failure, and only once after a success", () => {
    const script = `
      import fs from "node:fs/promises";
      import { syncBuiltinESMExports } from "node:module";
      const read = fs.readFile;
      let reads = 0;
      fs.readFile = (path, ...rest) =>
        String(path).endsWith(".wasm") && ++reads === 1 ? Promise.reject(new Error("disk asleep")) : read(path, ...rest);
      syncBuiltinESMExports();
      const { createLookback } = await import(${JSON.stringify(entry)});
      const first = await createLookback().catch((e) => e.code + ": " + e.message.includes("disk asleep"));
      const [a, b] = await Promise.all([createLookback(), createLookback()]);
      const c = await createLookback();
      console.log(JSON.stringify({ first, reads, apart: a !== b && b !== c }));`;
    expect(inProcess(script)).toEqual({ first: "wasm-unreachable: true", reads: 2, apart: true });
  });

  test("B5: instances started at the same time are independent", async () => {
    requests = [];
    const url = { variant: "simd", wasmUrl: `${origin}/right.wasm` } as const;
    const all = await Promise.all([createLookback(), createLookback(), createLookback(url), createLookback(url)]);
    expect(requests).toHaveLength(2);
    const held = all.map((lb, i) => lb.tensor(null, [i + 1]));
    all.forEach((lb, i) => {
      expect(lb.memory()).toMatchObject({ bytes: 4 * (i + 1), allocations: 1 });
    });
    all[0]!.dispose();
    expect(held.map((one) => one.disposed)).toEqual([true, false, false, false]);
    for (const lb of all.slice(1)) {
      expectAlive(lb);
      lb.dispose();
    }
  });
});
