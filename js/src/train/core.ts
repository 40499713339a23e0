import { fail } from "../errors.js";
import { checkBytes, Job } from "../heap.js";
import type { Decoder } from "../model/decoder.js";
import { SLOTS, slotShape } from "../model/slots.js";
import { Owned } from "../owned.js";
import type { Place } from "./checkpoint.js";
import type { WindowBatch } from "./data.js";

export interface CoreShape {
  readonly batch: number;
  readonly length: number;
}

export interface CoreBatch extends WindowBatch {
  readonly causal: boolean;
  /** Gradients are those of gradientScale · Σ loss. */
  readonly gradientScale: number;
  readonly dropout: number;
  /** 64 bits, the lower ones first. */
  readonly dropoutSeed: readonly [number, number];
}

export interface CoreUpdate {
  /** 1, 2, … */
  readonly step: number;
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** 0 = no clipping. */
  readonly maxNorm: number;
}

/** As in cpp/include/lookback/training.hpp. */
const NOT_FINITE = 13;
const TRAINING_PARTS = ["weights", "gradients", "firstMoments", "secondMoments"];

/** What learning needs beside the weights, in wasm memory: gradients, moments, and the activations of a micro-batch. */
export class TrainerCore extends Owned {
  readonly shape: CoreShape;
  readonly #decoder: Decoder;

  constructor(decoder: Decoder, shape: CoreShape) {
    super(decoder.heap, "The trainer");
    this.#decoder = decoder;
    this.shape = shape;
    const { heap } = decoder;
    const weights = decoder.weights().address;
    const bytes = heap.raw.trainerBytes(weights, shape);
    checkBytes(bytes, "The trainer (gradients, moments, activations; a smaller batch takes less)");
    const block = heap.own(this, bytes, "the trainer");
    const status = heap.raw.trainerCreate(weights, shape, block.address);
    if (status) {
      heap.release(block);
      fail("bad-option", `trainer: ${heap.raw.statusMessage(status)}.`);
    }
    this.hold(block);
  }

  /** Forward and backward; adds to the gradients. Gives the sum of all losses, in nats. */
  accumulate(batch: CoreBatch): number {
    return this.#pass("trainerAccumulate", batch);
  }

  /** Forward only. */
  evaluate({ tokens, targets }: WindowBatch, causal: boolean): number {
    const plain = { gradientScale: 1, dropout: 0, dropoutSeed: [0, 0] as const };
    return this.#pass("trainerEvaluate", { tokens, targets, causal, ...plain });
  }

  /** One step of AdamW with what has been accumulated, which is zero afterwards. Gives the norm before clipping. */
  update(step: CoreUpdate): number {
    const { raw } = this.#decoder.heap;
    const { status, gradientNorm } = raw.trainerUpdate(this.#decoder.weights().address, this.block().address, step);
    if (status === NOT_FINITE) diverged(`the gradient's norm at step ${step.step} is ${gradientNorm}`);
    if (status) fail("core", `trainer: ${raw.statusMessage(status)}.`);
    return gradientNorm;
  }

  zeroGradients(): void {
    this.#decoder.heap.raw.trainerZeroGradients(this.block().address);
  }

  /** A tensor [rows, columns] as it is stored. */
  read({ part, slot, layer }: Place): Float32Array {
    const [rows, columns] = slotShape(this.#decoder.settings, slot)!;
    const job = new Job(this.#decoder.heap, "trainer");
    const values = job.output(rows * columns);
    const place = { slot: SLOTS.indexOf(slot), layer, firstRow: 0, rowCount: rows };
    const [decoder, trainer] = [this.#decoder.weights().address, this.block().address];
    job.run(undefined, (raw, at) =>
      raw.trainerRead(decoder, trainer, TRAINING_PARTS.indexOf(part), place, at(values.place)),
    );
    return values.values!;
  }

  /** Puts a saved tensor back. */
  write({ part, slot, layer }: Place, values: Float32Array): void {
    const [rows, columns] = slotShape(this.#decoder.settings, slot)!;
    if (part === "weights") {
      const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
      const place = { slot, layer, firstRow: 0, rowCount: rows };
      this.#decoder.write({ ...place, type: "F32", bytes, from: 0, stride: columns, transposed: false });
      return;
    }
    const job = new Job(this.#decoder.heap, "trainer");
    const given = job.input(values);
    const place = { slot: SLOTS.indexOf(slot), layer, firstRow: 0, rowCount: rows };
    const { address } = this.block();
    job.run(undefined, (raw, at) => raw.trainerWriteMoments(address, TRAINING_PARTS.indexOf(part), place, at(given)));
  }

  #pass(name: "trainerAccumulate" | "trainerEvaluate", given: CoreBatch): number {
    const { tokens, targets, causal, gradientScale, dropout, dropoutSeed } = given;
    const job = new Job(this.#decoder.heap, "trainer");
    const [inputs, wanted] = [job.input(tokens), job.input(targets)];
    let sum = 0;
    job.run(undefined, (raw, at) => {
      const { status, loss } = raw[name](this.#decoder.weights().address, this.block().address, {
        tokens: at(inputs),
        targets: at(wanted),
        causal,
        gradientScale,
        dropout,
        seedLow: dropoutSeed[0],
        seedHigh: dropoutSeed[1],
      });
      sum = loss;
      return status;
    });
    return sum;
  }
}

/** Nothing has changed: the step was not made. */
export function diverged(how: string): never {
  fail(
    "training-diverged",
    `trainer: ${how}: the weights grow without bound. The step was not made; start anew with a smaller learningRate, a longer warmup, or clip ` +
      "(1 is usual).",
  );
}
