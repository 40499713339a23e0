/** Writes safetensors files: 8 bytes of header length, the header as JSON, then the data. */

export type FloatType = "F32" | "F16" | "BF16";

export interface NamedTensor {
  readonly dims: readonly number[];
  readonly values: ArrayLike<number>;
  /** Default F32. */
  readonly dtype?: FloatType;
}

export const safetensors = (tensors: Readonly<Record<string, NamedTensor>>): Uint8Array<ArrayBuffer> => {
  let at = 0;
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  const parts = Object.entries(tensors).map(([name, { dims, values, dtype = "F32" }]) => {
    const bytes = encodeFloats(values, dtype);
    header[name] = { dtype, shape: dims, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
    return bytes;
  });
  return withHeader(JSON.stringify(header), ...parts);
};

/** A file with any text as its header. */
export function withHeader(text: string, ...data: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const header = new TextEncoder().encode(text);
  const start = new Uint8Array(8);
  new DataView(start.buffer).setBigUint64(0, BigInt(header.length), true);
  return joined(start, header, ...data);
}

export function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function encodeFloats(values: ArrayLike<number>, dtype: FloatType): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * (dtype === "F32" ? 4 : 2)));
  for (let i = 0; i < values.length; i++) {
    if (dtype === "F32") view.setFloat32(4 * i, values[i]!, true);
    else view.setUint16(2 * i, dtype === "F16" ? halfBits(values[i]!) : bfloatBits(values[i]!), true);
  }
  return new Uint8Array(view.buffer);
}

/** What a file of this type says instead of the values. */
export function rounded(values: ArrayLike<number>, dtype: FloatType): Float64Array {
  return Float64Array.from(values, (value) => {
    if (dtype === "F32") return Math.fround(value);
    return dtype === "F16" ? halfValue(halfBits(value)) : bitsToFloat(bfloatBits(value) << 16);
  });
}

const scratch = new DataView(new ArrayBuffer(4));
const bitsToFloat = (bits: number): number => {
  scratch.setInt32(0, bits);
  return scratch.getFloat32(0);
};

/** The upper half, rounded to the nearest. */
function bfloatBits(value: number): number {
  scratch.setFloat32(0, value);
  return Math.min(0xffff, Math.round(scratch.getUint32(0) / 65536));
}

/** The nearest half-precision number of a value below 65504. */
function halfBits(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size < 2 ** -14) return sign | Math.round(size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size));
  return sign | (((exponent + 15) << 10) + Math.round((size / 2 ** exponent - 1) * 1024));
}

export function halfValue(bits: number): number {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const size = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return bits & 0x8000 ? -size : size;
}
