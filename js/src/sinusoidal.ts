import { checkBytes } from "./heap.js";
import { count, finite, flag, positiveInteger, readOptions } from "./options.js";
import { tensorOf } from "./tensors.js";
import type { Tensor } from "./types.js";

export interface SinusoidalOptions {
  /** Default 10000. */
  base?: number;
  /** The position of row 0; default 0. */
  offset?: number;
  /** sin and cos by turns, as published; false: all sines, then all cosines. Default true. */
  interleaved?: boolean;
}

/**
 * Sinusoidal positions [length, dims], to be added to embeddings: sin and cos of position · base^(−2i/dims) (Vaswani et al. 2017,
 * arXiv:1706.03762, §3.5).
 */
export function sinusoidal(length: number, dims: number, options?: SinusoidalOptions): Tensor {
  const table = { base: finite, offset: finite, interleaved: flag };
  const { base = 10000, offset = 0, interleaved = true } = readOptions(options, table, "sinusoidal");
  count(length, "sinusoidal: length");
  positiveInteger(dims, "sinusoidal: dims");
  checkBytes(length * dims * 4, "The positions");
  const half = Math.ceil(dims / 2);
  const value = (at: number) => {
    const d = at % dims;
    const pair = interleaved ? d >> 1 : d % half;
    const angle = (Math.floor(at / dims) + offset) * base ** ((-2 * pair) / dims);
    return (interleaved ? d % 2 === 0 : d < half) ? Math.sin(angle) : Math.cos(angle);
  };
  return tensorOf(
    Float32Array.from({ length: length * dims }, (_, at) => value(at)),
    [length, dims],
  );
}
