/** Attention from elsewhere: JSON, tables (CSV, TSV) and NumPy's .npy, as what `lookback/view` reads. */
import { dsvFormat } from "d3-dsv";
import { type Attention, type AttentionInput, readAttention } from "lookback/view";
import { load } from "npyjs";

export type Problem =
  | { readonly code: "empty" }
  | { readonly code: "json"; readonly message: string }
  | { readonly code: "no-weights"; readonly keys: readonly string[] }
  | { readonly code: "archive" }
  | { readonly code: "npy"; readonly message: string }
  | { readonly code: "npy-dims"; readonly dims: readonly number[] }
  | { readonly code: "npy-type"; readonly dtype: string }
  | { readonly code: "ragged"; readonly line: number; readonly found: number; readonly expected: number }
  | { readonly code: "not-a-number"; readonly line: number; readonly column: number; readonly found: string }
  | { readonly code: "tokens"; readonly count: number; readonly queries: number; readonly keys: number }
  /** What the reader of `lookback/view` says, in English. */
  | { readonly code: "refused"; readonly message: string };

/** Says what cannot be read; the page has words for each. */
export class WeightsError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super("message" in problem ? problem.message : JSON.stringify(problem));
    this.problem = problem;
  }
}

const refuse = (problem: Problem): never => {
  throw new WeightsError(problem);
};

export type Format = "json" | "table" | "npy";

export interface OwnWeights {
  readonly format: Format;
  readonly attention: Attention;
}

const NUMPY = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
const ZIP = [0x50, 0x4b, 0x03, 0x04];

/** Reads a file's bytes or pasted text. `tokens` name rows and columns where the data do not. */
export async function readWeights(source: ArrayBuffer | string, tokens: readonly string[] = []): Promise<OwnWeights> {
  if (typeof source !== "string") {
    const head = new Uint8Array(source, 0, Math.min(6, source.byteLength));
    const starts = (magic: readonly number[]) => magic.every((byte, index) => head[index] === byte);
    if (starts(NUMPY)) return named("npy", await readNumpy(source), tokens);
    if (starts(ZIP)) return refuse({ code: "archive" });
  }
  const text = (typeof source === "string" ? source : new TextDecoder().decode(source)).replace(/^\ufeff/, "");
  if (text.trim() === "") return refuse({ code: "empty" });
  if (/^\s*[[{]/.test(text)) return named("json", readJson(text), tokens);
  return named("table", readTable(text), tokens);
}

/** Checks the whole by the reader of `lookback/view`. */
function named(format: Format, input: unknown, tokens: readonly string[]): OwnWeights {
  const read = (each: unknown) => {
    try {
      return readAttention(each);
    } catch (error) {
      return refuse({ code: "refused", message: error instanceof Error ? error.message : String(error) });
    }
  };
  const attention = read(input);
  if (tokens.length === 0) return { format, attention };
  const { queryLength, keyLength } = attention;
  const plain = isRecord(input) && !("dims" in input) ? input : { weights: input };
  if (tokens.length === keyLength && queryLength <= keyLength)
    return { format, attention: read({ ...withoutNames(plain), tokens }) };
  if (tokens.length === queryLength + keyLength) {
    const [queryTokens, keyTokens] = [tokens.slice(0, queryLength), tokens.slice(queryLength)];
    return { format, attention: read({ ...withoutNames(plain), queryTokens, keyTokens, queryOffset: null }) };
  }
  return refuse({ code: "tokens", count: tokens.length, queries: queryLength, keys: keyLength });
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function withoutNames(input: Record<string, unknown>): Record<string, unknown> {
  const { tokens, queryTokens, keyTokens, left_text, right_text, query_tokens, key_tokens, ...rest } = input;
  return rest;
}

/** Python writes NaN and Infinity as bare words, which JSON does not know. */
const BARE = /("(?:[^"\\]|\\.)*")|-?\b(?:NaN|Infinity)\b/g;

function readJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(BARE, (word, quoted: string | undefined) => quoted ?? `"${word}"`));
  } catch (error) {
    return refuse({ code: "json", message: (error as Error).message });
  }
  const known = ["weights", "attentions", "attention", "attn", "steps", "dims"];
  if (isRecord(value) && !known.some((key) => key in (value as object)))
    return refuse({ code: "no-weights", keys: Object.keys(value).slice(0, 12) });
  return value;
}

const NUMBER = /^[-+−]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const isNumber = (cell: string) => NUMBER.test(cell) || /^[-+−]?(nan|inf|infinity)$/i.test(cell);

/** What separates the cells of the first line. */
function delimiterOf(text: string): string {
  const line = text.trimStart().split("\n", 1)[0] ?? "";
  const counts = ["\t", ";", ","].map((each) => [each, line.split(each).length] as const);
  const [best, count] = counts.reduce((most, each) => (each[1] > most[1] ? each : most));
  return count > 1 ? best : " ";
}

/** One matrix: a line per query. A first line or first column of words are tokens. */
function readTable(text: string): AttentionInput {
  const delimiter = delimiterOf(text);
  const lines = (delimiter === " " ? text.replace(/[^\S\n]+/g, " ") : text)
    .split(/\r?\n/)
    .map((line) => line.trim())
    .join("\n");
  const rows = dsvFormat(delimiter)
    .parseRows(lines)
    .map((cells, index) => ({ cells: cells.map((cell) => cell.trim()), line: index + 1 }))
    .filter(({ cells }) => cells.some((cell) => cell !== ""));
  const head = rows[0] && !rows[0].cells.every(isNumber) && rows.length > 1 ? rows.shift() : undefined;
  const labelled = rows.every(({ cells }) => !isNumber(cells[0] ?? "")) && rows.some(({ cells }) => cells.length > 1);
  const queryTokens = labelled ? rows.map(({ cells }) => cells.shift() ?? "") : undefined;
  const columns = rows[0]?.cells.length ?? 0;
  const weights = rows.map(({ cells, line }) => {
    if (cells.length !== columns) refuse({ code: "ragged", line, found: cells.length, expected: columns });
    return cells.map((cell, index) => {
      if (!isNumber(cell))
        refuse({ code: "not-a-number", line, column: index + 1 + (labelled ? 1 : 0), found: cell.slice(0, 40) });
      return /[a-z]{3}/i.test(cell) ? cell : Number(cell.replace("−", "-"));
    });
  });
  const keyTokens = head?.cells.slice(head.cells.length - columns);
  const square = weights.length === columns;
  if (!queryTokens && !keyTokens) return { weights };
  if (square && (!queryTokens || !keyTokens || queryTokens.join("\n") === keyTokens.join("\n")))
    return { weights, tokens: keyTokens ?? queryTokens ?? [] };
  return { weights, ...(queryTokens ? { queryTokens } : {}), ...(keyTokens ? { keyTokens } : {}) };
}

async function readNumpy(bytes: ArrayBuffer): Promise<AttentionInput> {
  const array = await load(bytes).catch((error: unknown) =>
    refuse({ code: "npy", message: error instanceof Error ? error.message : String(error) }),
  );
  const { shape, dtype, data, fortranOrder } = array;
  if (!/^[iufb]/.test(dtype) || /8$/.test(dtype.replace(/^f8$/, ""))) return refuse({ code: "npy-type", dtype });
  if (shape.length < 2) return refuse({ code: "npy-dims", dims: shape });
  const numbers = Float32Array.from(data as unknown as ArrayLike<number>);
  return { weights: { data: fortranOrder ? rowMajor(numbers, shape) : numbers, dims: shape } };
}

/** Column-major numbers (the first index runs fastest) in the order of rows. */
function rowMajor(data: Float32Array, dims: readonly number[]): Float32Array {
  const strides = dims.map((_, axis) => dims.slice(0, axis).reduce((product, dim) => product * dim, 1));
  return data.map((_, at) => {
    let rest = at;
    let from = 0;
    for (let axis = dims.length - 1; axis >= 0; axis--) {
      const dim = dims[axis] ?? 1;
      from += (rest % dim) * (strides[axis] ?? 0);
      rest = Math.floor(rest / dim);
    }
    return data[from] ?? Number.NaN;
  });
}
