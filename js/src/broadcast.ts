import { fail, shape } from "./errors.js";
import type { Place } from "./heap.js";
import type { RawBroadcast } from "./module.js";

/** Strides (in elements) that let row-major `dims` be read as `target`; undefined where they do not broadcast (from the right). */
export function broadcastStrides(dims: readonly number[], target: readonly number[]): number[] | undefined {
  const lead = target.length - dims.length;
  if (lead < 0) return undefined;
  const strides: number[] = new Array(target.length).fill(0);
  let stride = 1;
  for (let i = dims.length - 1; i >= 0; i--) {
    if (dims[i] === target[lead + i]) strides[lead + i] = dims[i] === 1 ? 0 : stride;
    else if (dims[i] !== 1) return undefined;
    stride *= dims[i]!;
  }
  return strides;
}

/** The strides of a mask or bias as [B, H, Lq, Lk], or an error that shows what would fit. */
export function scoreStrides(
  dims: readonly number[],
  [batch, heads, queryLength, keyLength]: readonly [number, number, number, number],
  what: "mask" | "bias",
  stored = 0,
): number[] {
  const strides = broadcastStrides(dims, [batch, heads, queryLength, keyLength]);
  if (strides !== undefined) return strides;
  const is = (...wanted: number[]) => wanted.length === dims.length && wanted.every((dim, i) => dim === dims[i]);
  const fits = `[${queryLength}, ${keyLength}] (Lq, Lk), [${heads}, ${queryLength}, ${keyLength}] (H, Lq, Lk) or [${batch}, ${heads}, ${queryLength}, ${keyLength}] (B, H, Lq, Lk), where any dim may be 1`;
  let hint = "";
  if (stored > 0 && dims.at(-1) === keyLength - stored) {
    hint = ` With a cache it covers the ${stored} stored keys, then the ${keyLength - stored} new ones.`;
  } else if (dims.length === 3 && dims[0] === batch) {
    hint = ` A 3-D ${what} is led by heads (${heads}), not by the batch (${batch}): for one per batch row give dims [${batch}, 1, ${dims[1]}, ${dims[2]}] ([B, 1, Lq, Lk]).`;
  } else if (is(batch, keyLength)) {
    hint = ` Is it padding? Give it as keyMask, or with dims [${batch}, 1, 1, ${keyLength}].`;
  } else if (is(keyLength, queryLength)) {
    hint = " It looks transposed: rows are queries, columns are keys.";
  } else if (dims.length === 3 && heads > 1 && dims[0] === batch * heads) {
    hint = ` PyTorch's [B·H, Lq, Lk] is [${batch}, ${heads}, ${dims[1]}, ${dims[2]}] here, with the same data.`;
  }
  return fail(`${what}-shape`, `${what}: dims ${shape(dims)} do not broadcast; accepted are ${fits}.${hint}`);
}

export const rawBroadcast = (address: number, strides: readonly number[]): RawBroadcast => ({
  data: address,
  batchStride: strides[0] ?? 0,
  headStride: strides[1] ?? 0,
  queryStride: strides[2] ?? 0,
  keyStride: strides[3] ?? 0,
});

/** A mask or bias of a call: where it is, and how it is read. */
export interface Broadcast {
  readonly place: Place;
  readonly strides: readonly number[];
}
