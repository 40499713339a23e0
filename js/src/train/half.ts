const scratch = new Float32Array(1);
const bitsOfScratch = new Uint32Array(scratch.buffer);

/** A float32 number as IEEE 754 half precision, rounded to the nearest, ties to even; beyond 65519 it is infinite. */
export function halfBits(value: number): number {
  scratch[0] = value;
  const bits = bitsOfScratch[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const size = bits & 0x7fffffff;
  if (size > 0x7f800000) return sign | 0x7e00;
  if (size >= 0x477ff000) return sign | 0x7c00;
  if (size < 0x38800000) {
    // Below 2⁻¹⁴: multiples of 2⁻²⁴. The sum rounds to them, for 0.5 has its last bit there.
    scratch[0] = Math.abs(value) + 0.5;
    return sign | (bitsOfScratch[0]! - 0x3f000000);
  }
  const odd = (size >>> 13) & 1;
  return sign | ((size - 0x38000000 + 0xfff + odd) >>> 13);
}
