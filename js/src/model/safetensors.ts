import { fail, kindOf, shape, show } from "../errors.js";
import type { ByteReader } from "./bytes.js";
import { parseObject } from "./sources.js";

/** A tensor's place in a safetensors file: bytes `begin` to `end` of what follows the header. */
export interface TensorEntry {
  readonly name: string;
  readonly dtype: string;
  readonly dims: readonly number[];
  readonly begin: number;
  readonly end: number;
}

/** The format's own limit. */
const MOST_HEADER = 100_000_000;
const DTYPE_BYTES: Readonly<Record<string, number>> = {
  ...{ F64: 8, I64: 8, U64: 8, C64: 8, F32: 4, I32: 4, U32: 4, F16: 2, BF16: 2, I16: 2, U16: 2 },
  ...{ I8: 1, U8: 1, BOOL: 1, F8_E4M3: 1, F8_E5M2: 1, F8_E8M0: 1 },
};

/**
 * Reads the header of a safetensors file (8 bytes of length, then JSON): its tensors in the order of their bytes. As the format wants it,
 * they cover the rest of the file, each byte once.
 */
export async function readHeader(reader: ByteReader): Promise<TensorEntry[]> {
  const start = await reader.read(8);
  const view = new DataView(start.buffer, start.byteOffset, 8);
  const length = view.getUint32(0, true) + 2 ** 32 * view.getUint32(4, true);
  const room = reader.size === undefined ? MOST_HEADER : Math.min(MOST_HEADER, reader.size - 8);
  if (length < 2 || length > room) {
    const text = String.fromCharCode(...start);
    fail(
      "invalid-model",
      `${reader.name} is no safetensors file: its header would have ${length} bytes (at most ${room} are possible); it starts with ${show(text)}.`,
    );
  }
  const bytes = await reader.read(length);
  const where = `The header of ${reader.name}`;
  const header = parseObject(bytes, where);
  refuseRepeatedNames(new TextDecoder().decode(bytes), where);
  const entries = Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, entry]) => readEntry(name, entry, where));
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  for (const { name, begin, end } of entries) {
    if (begin !== covered) {
      const how = begin < covered ? "overlaps the tensor before it" : "leaves a hole before it";
      fail(
        "invalid-model",
        `${where}: ${quoted(name)} ${how}: it begins at byte ${begin} of the data, not ${covered}.`,
      );
    }
    covered = end;
  }
  if (reader.size !== undefined && covered !== reader.size - 8 - length) {
    fail(
      "invalid-model",
      `${reader.name} is cut off or too long: its tensors take ${covered} bytes, but ${reader.size - 8 - length} follow the header.`,
    );
  }
  return entries;
}

/** A tensor's name, in full unless it is absurd. */
export const quoted = (name: string): string => JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name);

function readEntry(name: string, entry: unknown, where: string): TensorEntry {
  const no = (problem: string): never => fail("invalid-model", `${where}: ${quoted(name)} ${problem}.`);
  if (kindOf(entry) !== "Object") return no(`must be { dtype, shape, data_offsets }; received ${show(entry)}`);
  const { dtype, shape: dims, data_offsets: offsets } = entry as Record<string, unknown>;
  const isCount = (n: unknown) => Number.isSafeInteger(n) && (n as number) >= 0;
  if (typeof dtype !== "string") return no(`has dtype ${show(dtype)}`);
  if (!Array.isArray(dims) || !dims.every(isCount)) return no(`has shape ${show(dims)}`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount) || offsets[0] > offsets[1])
    return no(`has data_offsets ${show(offsets)}`);
  const [begin, end] = offsets as [number, number];
  const size = DTYPE_BYTES[dtype];
  const bytes = dims.reduce((total: number, dim: number) => total * dim, size ?? 0);
  if (size !== undefined && bytes !== end - begin)
    return no(`has ${end - begin} bytes; ${shape(dims)} of ${dtype} are ${bytes}`);
  return { name, dtype, dims, begin, end };
}

/** JSON.parse keeps the last of two equal names without a word. `text` is an object in valid JSON. */
function refuseRepeatedNames(text: string, where: string): void {
  const names = new Set<string>();
  let depth = 0;
  for (const [token, key] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/g)) {
    if (token === "{") depth++;
    else if (token === "}") depth--;
    else if (key !== undefined && depth === 1) {
      const name = JSON.parse(token.slice(0, -key.length)) as string;
      if (names.has(name)) fail("invalid-model", `${where} names ${quoted(name)} twice.`);
      names.add(name);
    }
  }
}
