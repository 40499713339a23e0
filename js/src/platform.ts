import { fail } from "./errors.js";
import type { ModuleFactory } from "./module.js";
import type { Variant } from "./types.js";

/** What differs between Node and the web: where the generated files are, and how they are read. */
export interface Platform {
  /** The generated module of a variant; imported when an instance is made, not before. */
  glue(variant: Variant, threaded: boolean): Promise<{ default: ModuleFactory }>;
  /** Where the package's own wasm is. */
  wasmUrl(variant: Variant, threaded: boolean): URL;
  /** How many processors this program may use. */
  processors(): Promise<number> | number;
  /** The contents, and the MIME type if there is one. Throws where nothing can be read. */
  read(url: string | URL): Promise<{ bytes: ArrayBuffer | Uint8Array; type?: string }>;
}

/** fetch, with a status other than 2xx as an error. */
export async function readByFetch(url: string | URL): Promise<{ bytes: ArrayBuffer; type: string }> {
  const response = await fetch(url);
  if (!response.ok) fail("wasm-unreachable", `HTTP status ${response.status}`);
  return { bytes: await response.arrayBuffer(), type: response.headers.get("content-type") ?? "" };
}
