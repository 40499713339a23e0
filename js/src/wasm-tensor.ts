import { fail, kindOf, show } from "./errors.js";
import { type Block, checkBytes, type Heap } from "./heap.js";
import { checkAttached, checkLength, product, readDims } from "./tensors.js";
import type { WasmTensor } from "./types.js";

/** `Symbol.dispose`, or a stand-in where the engine has none: importing lookback changes no global. */
export const DISPOSE: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** Plain numbers of any numeric array; what is no number is refused rather than becoming NaN. */
function readNumbers(data: unknown, where: string): ArrayLike<number> {
  if (ArrayBuffer.isView(data) && /^(Float|Int|Uint)/.test(kindOf(data))) {
    checkAttached(data, where);
    return data as unknown as ArrayLike<number>;
  }
  if (!Array.isArray(data)) {
    fail("bad-values", `${where}: data must be an array of numbers or a typed array; received ${show(data)}.`);
  }
  for (let i = 0; i < data.length; i++) {
    if (typeof data[i] !== "number") {
      fail("bad-values", `${where}: every value must be a number; data[${i}] is ${show(data[i])}.`);
    }
  }
  return data as number[];
}

class OwnedTensor implements WasmTensor {
  readonly dims: readonly number[];
  readonly #block: Block;
  readonly #length: number;

  constructor(heap: Heap, data: unknown, dims: unknown) {
    this.dims = Object.freeze(readDims(dims, "tensor"));
    this.#length = product(this.dims);
    checkBytes(this.#length * 4, "The tensor");
    let values: ArrayLike<number> | number = 0;
    if (data !== null) {
      values = readNumbers(data, "tensor");
      checkLength(values.length, this.dims, "tensor");
    }
    this.#block = heap.own(this, this.#length * 4, "the tensor");
    heap.write(this.#block, values, this.#length);
  }

  static is(value: unknown): value is OwnedTensor {
    return typeof value === "object" && value !== null && #block in value;
  }

  get disposed(): boolean {
    return this.#block.address === 0 || this.#block.heap.disposed;
  }

  /** The block, for calls of the same instance. */
  block(where: string): Block {
    this.#block.heap.raw; // throws where the whole instance is disposed
    if (this.disposed) fail("disposed", `${where} was disposed and can no longer be used.`);
    return this.#block;
  }

  read(): Float32Array {
    const block = this.block("The tensor");
    return block.heap.read(block, this.#length);
  }

  write(data: ArrayLike<number>): void {
    const block = this.block("The tensor");
    const values = readNumbers(data, "write");
    checkLength(values.length, this.dims, "write");
    block.heap.write(block, values, this.#length);
  }

  dispose(): void {
    this.#block.heap.release(this.#block);
  }

  [DISPOSE](): void {
    this.dispose();
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
