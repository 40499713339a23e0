import { fail, kindOf, refuse, show } from "./errors.js";
import { type Block, checkBytes, type Heap } from "./heap.js";
import { Owned } from "./owned.js";
import { checkAttached, checkLength, product, readDims } from "./tensors.js";
import type { WasmTensor } from "./types.js";

/** Plain numbers of any numeric array; what is no number is refused rather than becoming NaN. */
function readNumbers(data: unknown, where: string): ArrayLike<number> {
  if (ArrayBuffer.isView(data) && /^(Float|Int|Uint)/.test(kindOf(data))) {
    checkAttached(data, where);
    return data as unknown as ArrayLike<number>;
  }
  if (!Array.isArray(data)) {
    refuse("bad-values", `${where}: data`, "an array of numbers or a typed array", data);
  }
  for (let i = 0; i < data.length; i++) {
    if (typeof data[i] !== "number") {
      fail("bad-values", `${where}: every value must be a number; data[${i}] is ${show(data[i])}.`);
    }
  }
  return data as number[];
}

class OwnedTensor extends Owned implements WasmTensor {
  readonly dims: readonly number[];
  readonly #heap: Heap;
  readonly #length: number;

  constructor(heap: Heap, data: unknown, dims: unknown) {
    super(heap, "The tensor");
    this.#heap = heap;
    this.dims = Object.freeze(readDims(dims, "tensor"));
    this.#length = product(this.dims);
    checkBytes(this.#length * 4, "The tensor");
    const values = data === null ? 0 : this.#read(data, "tensor");
    heap.write(this.hold(heap.own(this, this.#length * 4, "the tensor")), values, this.#length);
  }

  static is(value: unknown): value is OwnedTensor {
    return typeof value === "object" && value !== null && #length in value;
  }

  read(): Float32Array {
    return this.#heap.read(this.block(), this.#length);
  }

  write(data: ArrayLike<number>): void {
    this.#heap.write(this.block(), this.#read(data, "write"), this.#length);
  }

  #read(data: unknown, where: string): ArrayLike<number> {
    const values = readNumbers(data, where);
    checkLength(values.length, this.dims, where);
    return values;
  }
}

export const makeTensor = (heap: Heap, data: unknown, dims: unknown): WasmTensor => new OwnedTensor(heap, data, dims);

export const isWasmTensor = (value: unknown): value is WasmTensor => OwnedTensor.is(value);

/** The memory of a tensor as an operand of `heap`; it must be alive and live there. */
export function blockOf(tensor: WasmTensor, heap: Heap, where: string): Block {
  const block = (tensor as OwnedTensor).block(where);
  if (block.heap === heap) return block;
  return fail(
    "other-instance",
    `${where} is a tensor of another lookback instance; pass { data: tensor.read(), dims: tensor.dims }.`,
  );
}
