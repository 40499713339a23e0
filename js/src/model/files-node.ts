import type { FileHandle } from "node:fs/promises";
import { fail, messageOf } from "../errors.js";
import { type ByteReader, type ByteSource, PlacedReader } from "./bytes.js";

class FileReader extends PlacedReader {
  readonly #handle: FileHandle;
  #buffer = new Uint8Array(0);

  constructor(name: string, size: number, handle: FileHandle, signal: AbortSignal | undefined) {
    super(name, size, signal);
    this.#handle = handle;
  }

  /** Into one buffer, again and again. */
  protected override async at(from: number, length: number): Promise<Uint8Array> {
    if (this.#buffer.length < length) this.#buffer = new Uint8Array(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#handle.read(this.#buffer, filled, length - filled, from + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return this.#buffer.subarray(0, filled);
  }

  override async close(): Promise<void> {
    await this.#handle.close(); // a second time is harmless
  }
}

/** The file at a path of this machine. */
export function pathSource(path: string | URL): ByteSource {
  const name = String(path);
  return { name, absence: "no such file", open: (signal) => openPath(path, name, signal) };
}

async function openPath(path: string | URL, name: string, signal?: AbortSignal): Promise<ByteReader | undefined> {
  const { open } = await import("node:fs/promises");
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, "r");
    const status = await handle.stat();
    if (status.isFile()) return new FileReader(name, status.size, handle, signal);
  } catch (error) {
    await handle?.close();
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    fail("model-unreachable", `Cannot read ${name}: ${messageOf(error)}`, error);
  }
  await handle.close();
  return fail("model-unreachable", `${name} is no file.`);
}
