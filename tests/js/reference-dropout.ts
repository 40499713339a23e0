/** R19 in plain numbers, written from the definition in cpp/src/kernels/dropout.hpp: which weights are dropped. */
const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;
const { imul } = Math;

/** SplitMix64's finaliser. */
function mix(x: bigint): bigint {
  let z = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

/** What the weight of key j is multiplied by, for one query: 0 or 1 / (1 − p). */
export function dropoutOfRow(
  { p, seed }: { p: number; seed: number },
  b: number,
  h: number,
  position: number,
): (j: number) => number {
  let key = mix(BigInt(seed) & MASK);
  for (const word of [b, h, position]) key = mix(((key + GOLDEN) & MASK) ^ (BigInt(word) & MASK));
  const first = Number(key & 0xffffffffn);
  const second = Number(key >> 32n) | 0;
  return (j) => {
    let x = (first + imul(j, 0x9e3779b9)) | 0;
    x = imul(x ^ (x >>> 16), 0x7feb352d) ^ second;
    x = imul(x ^ (x >>> 15), 0x846ca68b);
    x = (x ^ (x >>> 16)) >>> 0;
    const float32 = Math.fround(p);
    return x < float32 * 2 ** 32 ? 0 : 1 / (1 - float32);
  };
}
