import { fail, kindOf, messageOf, refuse, show } from "./errors.js";
import { chooseVariant } from "./features.js";
import type { ModuleFactory, RawModule } from "./module.js";
import { oneOf, type Reader, readOptions } from "./options.js";
import type { Platform } from "./platform.js";
import type * as Threads from "./threads.js";
import type { Variant } from "./types.js";

/** As in cpp/include/lookback/parallel.hpp. */
const MOST_THREADS = 64;

type UrlOption = string | URL | ((variant: Variant, threaded: boolean) => string | URL);

/** Accepts what `accepts` does; `accepted` says it in words. */
const matching =
  <T>(accepted: string, accepts: (value: unknown) => boolean): Reader<T> =>
  (value, where) =>
    accepts(value) ? (value as T) : refuse("bad-option", where, accepted, value);

const OPTIONS = {
  variant: oneOf<"auto" | Variant>("auto", "simd", "relaxed"),
  wasmUrl: matching<UrlOption>(
    "a URL, or a function that gives one",
    (value) => ["string", "function"].includes(typeof value) || kindOf(value) === "URL",
  ),
  wasmBinary: matching<ArrayBuffer | ArrayBufferView>(
    "an ArrayBuffer or a typed array",
    (value) => ArrayBuffer.isView(value) || /^(Shared)?ArrayBuffer$/.test(kindOf(value)),
  ),
  wasmModule: matching<WebAssembly.Module>("a WebAssembly.Module", (value) => kindOf(value) === "WebAssembly.Module"),
  threads: matching<number | "auto">(
    `an integer from 1 to ${MOST_THREADS}, or 'auto'`,
    (value) =>
      value === "auto" || (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_THREADS),
  ),
};

/** The package's own wasm files, each compiled once; a failure is forgotten, so that the next start tries again. */
const compiled = new WeakMap<Platform, Map<string, Promise<WebAssembly.Module>>>();

export interface Loaded {
  readonly raw: RawModule;
  readonly variant: Variant;
  readonly threads: Threads.ThreadChoice;
  /** Ends the threads with `owner`, should it be forgotten. */
  watch(owner: object): void;
}

/** Wasm with threads imports its memory, so that they can share it. */
const isThreaded = (module: WebAssembly.Module): boolean =>
  WebAssembly.Module.imports(module).some(({ kind }) => kind === "memory");

/** One thread in place of `wanted`: 'auto' is content with it, a number is not. */
function oneThread(wanted: number | "auto", reason: string, cause?: unknown): Threads.ThreadChoice {
  if (wanted === "auto") return { count: 1, reason };
  return fail("threads-unsupported", `createLookback: threads ${wanted}: ${reason}. Use threads 'auto' or 1.`, cause);
}

/** Chooses the variant and the number of threads, gets the wasm, and starts it. */
export async function loadModule(platform: Platform, given: unknown): Promise<Loaded> {
  const options = readOptions(given, OPTIONS, "createLookback");
  const { wasmUrl, wasmBinary, wasmModule } = options;
  const sources = Object.entries({ wasmUrl, wasmBinary, wasmModule }).filter(([, value]) => value !== undefined);
  if (sources.length > 1) {
    fail("bad-option", `createLookback: ${sources.map(([name]) => name).join(" and ")} exclude each other; give one.`);
  }
  const wanted = options.variant ?? "auto";
  const isOneFile = sources.length === 1 && typeof wasmUrl !== "function";
  if (isOneFile && wanted === "auto") {
    fail(
      "variant-missing",
      `createLookback: ${sources[0]![0]} is one wasm file: say which with variant 'simd' or 'relaxed'.`,
    );
  }
  const variant = chooseVariant(wanted);
  const wantedThreads = options.threads ?? 1;
  // What only threads need is loaded where they are asked for.
  const tools = wantedThreads === 1 ? undefined : await import("./threads.js");
  let threads = (await tools?.chooseThreads(platform, wantedThreads)) ?? { count: 1, reason: undefined };
  if (threads.reason) threads = oneThread(wantedThreads, threads.reason);
  const get = (threaded: boolean): Promise<WebAssembly.Module> | WebAssembly.Module => {
    if (wasmModule) return wasmModule;
    if (wasmBinary) return compile(wasmBinary, "wasmBinary");
    if (wasmUrl) return fetchModule(platform, typeof wasmUrl === "function" ? wasmUrl(variant, threaded) : wasmUrl);
    return ownModule(platform, variant, threaded);
  };
  const module = await get(threads.count > 1);
  if (isThreaded(module) && threads.count === 1) {
    const found = `it is the wasm with threads, and there is to be one thread${threads.reason ? `: ${threads.reason}` : ""}`;
    fail("wasm-invalid", `The wasm does not start: ${found}.`);
  }
  if (threads.count > 1 && !isThreaded(module)) threads = oneThread(wantedThreads, "the given wasm has no threads");
  try {
    const raw = await start(platform, variant, module, threads.count);
    if (threads.count > 1) await tools!.startThreads(raw, threads.count);
    return { raw, variant, threads, watch: (owner) => tools?.endThreadsWith(owner, raw) };
  } catch (error) {
    if (!(error instanceof ThreadFailure)) throw error;
    // The other wasm is not ours to choose where one was given.
    const wantedHere = isOneFile ? threads.count : wantedThreads;
    threads = oneThread(wantedHere, `the threads did not start: ${error.message}`, error);
    return { raw: await start(platform, variant, await get(false), 1), variant, threads, watch: () => {} };
  }
}

function ownModule(platform: Platform, variant: Variant, threaded: boolean): Promise<WebAssembly.Module> {
  let cache = compiled.get(platform);
  if (!cache) {
    cache = new Map();
    compiled.set(platform, cache);
  }
  const key = `${variant} ${threaded}`;
  const known = cache.get(key);
  if (known) return known;
  const loading = fetchModule(platform, platform.wasmUrl(variant, threaded));
  cache.set(key, loading);
  loading.catch(() => cache.delete(key));
  return loading;
}

async function fetchModule(platform: Platform, url: string | URL): Promise<WebAssembly.Module> {
  let file: Awaited<ReturnType<Platform["read"]>>;
  try {
    file = await platform.read(url);
  } catch (error) {
    return fail(
      "wasm-unreachable",
      `Cannot read the wasm from ${url}: ${messageOf(error)}. Option wasmUrl says where it is.`,
      error,
    );
  }
  return compile(file.bytes, String(url), file.type);
}

/** The MIME type is looked at for the message only: servers that send wasm as octets are no reason to fail. */
async function compile(source: ArrayBuffer | ArrayBufferView, where: string, type = ""): Promise<WebAssembly.Module> {
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  const start = String.fromCharCode(...bytes.subarray(0, 64)).trimStart();
  if (!start.startsWith("\0asm")) {
    if (start.startsWith("<") || type.startsWith("text/html")) {
      fail(
        "wasm-is-html",
        `${where} is an HTML page (a fallback of the server?), not wasm. Option wasmUrl says where the package's dist/wasm files are.`,
      );
    }
    fail(
      "wasm-invalid",
      `${where} is no wasm: it has ${bytes.length} bytes and starts with ${show(start.slice(0, 12))}${type && ` (${type})`}.`,
    );
  }
  try {
    // A copy where the bytes are shared or a view: engines differ in what they take.
    return await WebAssembly.compile(
      kindOf(bytes.buffer) === "SharedArrayBuffer" ? bytes.slice() : (bytes as Uint8Array<ArrayBuffer>),
    );
  } catch (error) {
    return fail("wasm-invalid", `${where} does not compile: ${messageOf(error)}`, error);
  }
}

/** A start that failed although the wasm is right: no worker, or no memory to share. */
class ThreadFailure extends Error {}

async function start(
  platform: Platform,
  variant: Variant,
  module: WebAssembly.Module,
  threads: number,
): Promise<RawModule> {
  let factory: ModuleFactory;
  try {
    factory = (await platform.glue(variant, threads > 1)).default;
  } catch (error) {
    return fail(
      "glue-unreachable",
      `Cannot import the generated module of variant '${variant}': ${messageOf(error)}`,
      error,
    );
  }
  // The generated module is given the wasm; it waits for ever if that fails, or a worker does, hence the race.
  let refuse: (error: unknown) => void = () => {};
  const refused = new Promise<never>((_, reject) => {
    refuse = reject;
  });
  let instantiated = false;
  const overrides: Partial<RawModule> & Record<string, unknown> = {
    workers: threads - 1,
    onWorkerError: (event: { message?: string }) => refuse(new ThreadFailure(event.message ?? "a worker was refused")),
    instantiateWasm(
      imports: WebAssembly.Imports,
      done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
    ) {
      WebAssembly.instantiate(module, imports)
        .then((instance) => {
          instantiated = true;
          done(instance, module);
        })
        .catch(refuse);
      return {};
    },
  };
  const starting = async (): Promise<RawModule> => {
    try {
      return await factory(overrides);
    } catch (error) {
      throw threads > 1 && !instantiated ? new ThreadFailure(messageOf(error)) : error;
    }
  };
  try {
    return await Promise.race([starting(), refused]);
  } catch (error) {
    overrides.PThread?.terminateAllThreads();
    if (error instanceof ThreadFailure) throw error;
    return fail(
      "wasm-invalid",
      `The wasm does not start; is it variant '${variant}' of this version of lookback? ${messageOf(error)}`,
      error,
    );
  }
}
