import { fail, shape } from "../errors.js";
import type { FloatType } from "../model/weight-rows.js";
import { halfBits } from "./half.js";

/** What a tensor's values are written as. */
export type WrittenType = Exclude<FloatType, "BF16">;

/** A tensor on its way into a file; `values` is asked for when its turn has come, so that one is in memory at a time. */
export interface WrittenTensor {
  readonly name: string;
  readonly dims: readonly number[];
  readonly values: () => Float32Array;
}

const ALIGNMENT = 8;

/**
 * A safetensors file as Python's package writes it: 8 bytes of header length, the header as JSON (`__metadata__` first, then the tensors in
 * the order of their bytes), spaces up to a multiple of 8 bytes, and the values, little-endian, without gaps, sorted by name.
 */
export function writeSafetensors(
  tensors: readonly WrittenTensor[],
  type: WrittenType,
  metadata: Readonly<Record<string, string>>,
): Uint8Array<ArrayBuffer> {
  const size = type === "F32" ? 4 : 2;
  const sorted = [...tensors].sort((a, b) => (a.name < b.name ? -1 : 1));
  const header: Record<string, unknown> = { __metadata__: metadata };
  let end = 0;
  const places = sorted.map(({ name, dims }) => {
    const begin = end;
    end += size * dims.reduce((product, dim) => product * dim, 1);
    header[name] = { dtype: type, shape: dims, data_offsets: [begin, end] };
    return begin;
  });
  const text = new TextEncoder().encode(JSON.stringify(header));
  const headerBytes = Math.ceil(text.length / ALIGNMENT) * ALIGNMENT;
  const file = new Uint8Array(8 + headerBytes + end);
  new DataView(file.buffer).setUint32(0, headerBytes, true);
  file.fill(0x20, 8 + text.length, 8 + headerBytes);
  file.set(text, 8);
  sorted.forEach(({ name, dims, values }, n) => {
    const from = 8 + headerBytes + places[n]!;
    const given = values();
    if (given.length !== dims.reduce((product, dim) => product * dim, 1))
      fail("core", `${name} ${shape(dims)} was given ${given.length} values.`);
    writeValues(file, from, given, type, name);
  });
  return file;
}

function writeValues(file: Uint8Array, from: number, values: Float32Array, type: WrittenType, name: string): void {
  const view = new DataView(file.buffer, from, values.length * (type === "F32" ? 4 : 2));
  for (let i = 0; i < values.length; i++) {
    if (type === "F32") {
      view.setFloat32(4 * i, values[i]!, true);
      continue;
    }
    const bits = halfBits(values[i]!);
    if ((bits & 0x7fff) === 0x7c00)
      fail("bad-values", `${name} holds ${values[i]}, which float16 cannot (at most 65504); export with dtype 'f32'.`);
    view.setUint16(2 * i, bits, true);
  }
}
