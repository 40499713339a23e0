import { fail, kindOf, messageOf, refuse, show } from "./errors.js";
import { chooseVariant } from "./features.js";
import type { ModuleFactory, RawModule } from "./module.js";
import { oneOf, type Reader, readOptions } from "./options.js";
import type { Platform } from "./platform.js";
import type { Variant } from "./types.js";

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
  threads: matching<1 | "auto">(
    "1 or 'auto', for this build has no threads",
    (value) => value === 1 || value === "auto",
  ),
};

/** The package's own wasm, compiled once per variant; a failure is forgotten, so that the next start tries again. */
const compiled = new WeakMap<Platform, Map<Variant, Promise<WebAssembly.Module>>>();

/** Chooses the variant, gets its wasm, and starts it. */
export async function loadModule(
  platform: Platform,
  given: unknown,
): Promise<{ raw: RawModule; variant: Variant; threadsReason: string | undefined }> {
  const options = readOptions(given, OPTIONS, "createLookback");
  const { wasmUrl, wasmBinary, wasmModule } = options;
  const sources = Object.entries({ wasmUrl, wasmBinary, wasmModule }).filter(([, value]) => value !== undefined);
  if (sources.length > 1) {
    fail("bad-option", `createLookback: ${sources.map(([name]) => name).join(" and ")} exclude each other; give one.`);
  }
  const wanted = options.variant ?? "auto";
  if (sources.length === 1 && typeof wasmUrl !== "function" && wanted === "auto") {
    fail(
      "variant-missing",
      `createLookback: ${sources[0]![0]} is one wasm file: say which with variant 'simd' or 'relaxed'.`,
    );
  }
  const variant = chooseVariant(wanted);
  let module: WebAssembly.Module;
  if (wasmModule) module = wasmModule;
  else if (wasmBinary) module = await compile(wasmBinary, "wasmBinary");
  else if (wasmUrl)
    module = await fetchModule(platform, typeof wasmUrl === "function" ? wasmUrl(variant, false) : wasmUrl);
  else module = await ownModule(platform, variant);
  const threadsReason = options.threads === "auto" ? "this build has no threads" : undefined;
  return { raw: await start(platform, variant, module), variant, threadsReason };
}

function ownModule(platform: Platform, variant: Variant): Promise<WebAssembly.Module> {
  let cache = compiled.get(platform);
  if (!cache) {
    cache = new Map();
    compiled.set(platform, cache);
  }
  const known = cache.get(variant);
  if (known) return known;
  const loading = fetchModule(platform, platform.wasmUrl(variant));
  cache.set(variant, loading);
  loading.catch(() => cache.delete(variant));
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

async function start(platform: Platform, variant: Variant, module: WebAssembly.Module): Promise<RawModule> {
  let factory: ModuleFactory;
  try {
    factory = (await platform.glue(variant)).default;
  } catch (error) {
    return fail(
      "glue-unreachable",
      `Cannot import the generated module of variant '${variant}': ${messageOf(error)}`,
      error,
    );
  }
  // The generated module is given the wasm; it waits for ever if that fails, hence the race.
  let refuse: (error: unknown) => void = () => {};
  const refused = new Promise<never>((_, reject) => {
    refuse = reject;
  });
  const instantiateWasm = (
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ) => {
    WebAssembly.instantiate(module, imports)
      .then((instance) => done(instance, module))
      .catch(refuse);
    return {};
  };
  try {
    return await Promise.race([factory({ instantiateWasm }), refused]);
  } catch (error) {
    return fail(
      "wasm-invalid",
      `The wasm does not start; is it variant '${variant}' of this version of lookback? ${messageOf(error)}`,
      error,
    );
  }
}
