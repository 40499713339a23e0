import { fail, kindOf, messageOf, refuse, show } from "../errors.js";
import { later, type Reader, readOptions } from "../options.js";
import { BlobReader, type ByteReader, type ByteSource, CHUNK_BYTES, MemoryReader, StreamReader } from "./bytes.js";

/** One file: a path (Node.js), a URL, a File, or its bytes. */
export type FileSource = string | URL | Blob | ArrayBuffer | ArrayBufferView;

/** A folder's path (Node.js) or URL, its files, its files by their names wherever each is, or the two files of llama2.c. */
export type ModelSource =
  | string
  | URL
  | readonly File[]
  | { readonly [index: number]: File; readonly length: number }
  | NamedFiles
  | { weights: FileSource; tokenizer: FileSource };

/** A folder whose files lie anywhere, as where a bundler has put them: each by the name that it has in the folder. */
export interface NamedFiles {
  readonly files: Readonly<Record<string, FileSource>>;
  /** What the model is called. */
  readonly name?: string;
}

/** What differs between Node.js and the web. */
export interface Files {
  /** The file at a path; undefined where paths mean nothing, and a string is a URL. */
  readonly path?: (path: string | URL) => ByteSource;
}

/** The files of a model by their names. */
export interface Folder {
  readonly name: string;
  file(name: string): ByteSource;
}

export type OpenedSource = { folder: Folder } | { weights: ByteSource; tokenizer: ByteSource };

/** Of two letters at least: C:\ is a path. */
const SCHEME = /^[a-z][a-z\d+.-]+:/i;
/** Tokenizers of large vocabularies have 30 MB. */
const MOST_JSON = 2 ** 28;
const ACCEPTED =
  "a folder's path or URL, a list of Files, { files: { 'config.json': …, … } }, or { weights, tokenizer }: the two .bin files of llama2.c, each a path, URL, File or ArrayBuffer";

export function openSource(files: Files, given: unknown): OpenedSource {
  if (typeof given === "string" || kindOf(given) === "URL") {
    const name = String(given);
    if (name === "") refuse("bad-option", "loadDecoder: the source", ACCEPTED, given);
    if (/\.(bin|safetensors|gguf|json)$/i.test(splitAddress(name)[0]))
      fail(
        "bad-option",
        `loadDecoder: ${name} is one file. Give the folder that it is in, or { weights: '….bin', tokenizer: '….bin' } for llama2.c's format.`,
      );
    return { folder: { name, file: (file) => fileSource(files, inFolder(given as string | URL, file), file) } };
  }
  const list = listOfFiles(given);
  if (list) return { folder: filesAsFolder(list) };
  if (kindOf(given) !== "Object") refuse("bad-option", "loadDecoder: the source", ACCEPTED, given);
  if ("files" in (given as object)) return { folder: namedFiles(files, given) };
  const pair = readOptions(
    given,
    {
      weights: (value) => fileSource(files, value, "weights"),
      tokenizer: (value) => fileSource(files, value, "tokenizer"),
    },
    "loadDecoder: the source",
  );
  if (!pair.weights || !pair.tokenizer)
    fail("bad-option", `loadDecoder: ${pair.weights ? "tokenizer" : "weights"} is missing; the source is ${ACCEPTED}.`);
  return { weights: pair.weights, tokenizer: pair.tokenizer };
}

function namedFiles(files: Files, given: unknown): Folder {
  const where = "loadDecoder: the source";
  const readName: Reader<string> = (value, what) =>
    typeof value === "string" ? value : refuse("bad-option", what, "a string", value);
  const { files: named, name = "the files given" } = readOptions(given, { files: later(), name: readName }, where);
  if (kindOf(named) !== "Object") refuse("bad-option", `${where}: files`, "an object of files by their names", named);
  const sources = new Map(Object.entries(named as object).map(([file, at]) => [file, fileSource(files, at, file)]));
  const absence = `the files are ${show([...sources.keys()])}`;
  return {
    name,
    file: (file) => sources.get(file) ?? { name: file, absence, open: async () => undefined },
  };
}

function listOfFiles(given: unknown): Blob[] | undefined {
  if (!Array.isArray(given) && kindOf(given) !== "FileList") return undefined;
  const list = Array.from(given as ArrayLike<unknown>);
  for (const one of list)
    if (kindOf(one) !== "File") refuse("bad-option", "loadDecoder: each of the files", "a File", one);
  return list as Blob[];
}

function filesAsFolder(list: readonly Blob[]): Folder {
  const named = new Map(list.map((file) => [(file as File).name, file]));
  return {
    name: "the files given",
    file: (name) => ({
      name,
      absence: `the files are ${show([...named.keys()])}`,
      open: async (signal) => {
        const file = named.get(name);
        return file && new BlobReader(name, file, signal);
      },
    }),
  };
}

/** An address without its query and fragment, and these; a path has none. */
function splitAddress(address: string): readonly [string, string] {
  const query = SCHEME.test(address) ? address.search(/[?#]/) : -1;
  return query < 0 ? [address, ""] : [address.slice(0, query), address.slice(query)];
}

/** The address of a folder's file; a query (?token=…) stays behind it. */
function inFolder(folder: string | URL, file: string): string {
  const [path, rest] = splitAddress(String(folder));
  return `${path}${/[/\\]$/.test(path) ? "" : "/"}${file}${rest}`;
}

function fileSource(files: Files, given: unknown, what: string): ByteSource {
  if (given !== "" && (typeof given === "string" || kindOf(given) === "URL")) {
    const address = given as string | URL;
    const isUrl = typeof address !== "string" || SCHEME.test(address);
    if (files.path && (!isUrl || String(address).startsWith("file:")))
      return files.path(isUrl ? new URL(address) : address);
    return /^data:/i.test(String(address)) ? dataSource(String(address)) : urlSource(address);
  }
  if (kindOf(given) === "File" || kindOf(given) === "Blob") {
    const name = (given as Partial<File>).name ?? what;
    return { name, open: async (signal) => new BlobReader(name, given as Blob, signal) };
  }
  if (ArrayBuffer.isView(given)) {
    const bytes = new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
    return { name: what, open: async (signal) => new MemoryReader(what, bytes, signal) };
  }
  if (/^(Shared)?ArrayBuffer$/.test(kindOf(given))) {
    const bytes = new Uint8Array(given as ArrayBuffer);
    return { name: what, open: async (signal) => new MemoryReader(what, bytes, signal) };
  }
  return refuse("bad-option", `loadDecoder: ${what}`, "a path, URL, File or ArrayBuffer", given);
}

/** A file that a bundler has written into its address; a page's policy may forbid to fetch that, and there is no need to. */
function dataSource(address: string): ByteSource {
  const [, kind = "", content] = /^data:([^,]*),(.*)$/is.exec(address) ?? [];
  const name = `data:${kind}`;
  let bytes: Uint8Array;
  try {
    const plain = decodeURIComponent(content!);
    bytes = /;base64$/i.test(kind)
      ? Uint8Array.from(atob(plain), (one) => one.charCodeAt(0))
      : new TextEncoder().encode(plain);
  } catch {
    return refuse(
      "bad-option",
      "loadDecoder: a data: URL",
      "text or base64 behind a comma",
      `${address.slice(0, 60)} …`,
    );
  }
  return { name, open: async (signal) => new MemoryReader(name, bytes, signal) };
}

/** Node.js says "fetch failed", and why in the cause. */
function reasonOf(error: unknown): string {
  const { cause } = Object(error) as { cause?: unknown };
  const { code } = Object(cause) as { code?: unknown };
  const reason = cause === undefined ? "" : messageOf(cause) || code;
  return reason ? `${messageOf(error)} (${reason})` : messageOf(error);
}

function urlSource(url: string | URL): ByteSource {
  const source = {
    name: String(url),
    absence: "",
    async open(signal: AbortSignal | undefined): Promise<ByteReader | undefined> {
      let response: Response;
      try {
        response = await fetch(url, signal ? { signal } : {});
      } catch (error) {
        signal?.throwIfAborted();
        return fail("model-unreachable", `Cannot fetch ${url}: ${reasonOf(error)}`, error);
      }
      const isPage = (response.headers.get("content-type") ?? "").startsWith("text/html");
      if (response.status === 404 || (response.ok && isPage)) {
        source.absence = isPage ? "an HTML page came in its place" : "HTTP status 404";
        await response.body?.cancel();
        return undefined;
      }
      if (!response.ok || !response.body) fail("model-unreachable", `${url}: HTTP status ${response.status}`);
      // With a content encoding the header counts what goes over the wire.
      const length = response.headers.get("content-encoding") ? null : response.headers.get("content-length");
      return new StreamReader(source.name, length === null ? undefined : Number(length), response.body, signal);
    },
  };
  return source;
}

/** Opens what must be there. */
export async function mustOpen(source: ByteSource, signal: AbortSignal | undefined): Promise<ByteReader> {
  signal?.throwIfAborted();
  const reader = await source.open(signal);
  return (
    reader ?? fail("model-unreachable", `${source.name} is missing${source.absence ? `: ${source.absence}` : ""}.`)
  );
}

/** All bytes of a file that is small, or refused. */
export async function readWhole(reader: ByteReader, most: number): Promise<Uint8Array> {
  try {
    const { size } = reader;
    if (size !== undefined && size > most) tooLong(reader.name, size, most);
    if (size !== undefined) return (await reader.read(size)).slice();
    const pieces: Uint8Array[] = [];
    for (;;) {
      const piece = await reader.next(CHUNK_BYTES);
      if (piece.length === 0) return concatenate(pieces, reader.position);
      if (reader.position > most) tooLong(reader.name, reader.position, most);
      pieces.push(piece.slice());
    }
  } finally {
    await reader.close();
  }
}

function concatenate(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

const tooLong = (name: string, bytes: number, most: number): never =>
  fail("invalid-model", `${name} has ${bytes} bytes or more; at most ${most} are read of such a file.`);

/** A JSON file's value, which is an object. */
export async function readJson(reader: ByteReader, most = MOST_JSON): Promise<Record<string, unknown>> {
  const { name } = reader;
  return parseObject(await readWhole(reader, most), name);
}

/** The object that UTF-8 bytes spell. */
export function parseObject(bytes: Uint8Array, name: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    return fail("invalid-model", `${name} is not JSON: ${messageOf(error)}`, error);
  }
  if (kindOf(value) !== "Object") refuse("invalid-model", name, "a JSON object", value);
  return value as Record<string, unknown>;
}
