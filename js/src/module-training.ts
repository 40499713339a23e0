import type { RawStatus } from "./module.js";

/** What the generated module offers for training decoders; see module.ts. The C++ side is bindings/training.cpp. */
export interface RawTrainingModule {
  /** A trainer is an address of trainerBytes(decoder, shape) bytes, a multiple of 64. The decoder's weights are float32. */
  trainerBytes(decoder: number, shape: RawTrainingShape): number;
  /** Gradients and moments are 0 afterwards. */
  trainerCreate(decoder: number, shape: RawTrainingShape, trainer: number): RawStatus;
  /** Forward and backward; adds to the gradients. */
  trainerAccumulate(decoder: number, trainer: number, batch: RawTrainingBatch): RawTrainingLoss;
  /** Forward only, without dropout. */
  trainerEvaluate(decoder: number, trainer: number, batch: RawTrainingBatch): RawTrainingLoss;
  /** Clips, steps, sets the gradients to 0. Status 13, and nothing changed, if their norm is not finite. */
  trainerUpdate(decoder: number, trainer: number, step: RawTrainingStep): RawTrainingNorm;
  trainerZeroGradients(trainer: number): undefined;
  /** Rows as float32 into `values`. Part 0 weights (then `trainer` may be 0), 1 gradients, 2 first moments, 3 second moments. */
  trainerRead(decoder: number, trainer: number, part: number, rows: RawTensorRows, values: number): RawStatus;
  /** Parts 2 and 3. */
  trainerWriteMoments(trainer: number, part: number, rows: RawTensorRows, values: number): RawStatus;
}

export interface RawTrainingShape {
  batch: number;
  length: number;
}

export interface RawTrainingBatch {
  /** int32 [batch, length]. */
  tokens: number;
  /** int32 [batch, length]: the token that follows each; −1 = not counted. */
  targets: number;
  causal: boolean;
  /** Gradients are those of gradientScale · Σ loss. */
  gradientScale: number;
  /** Probability, of attention weights and of what each branch adds to the residual stream. */
  dropout: number;
  /** The lower and upper 32 bits of dropout's seed. */
  seedLow: number;
  seedHigh: number;
}

/** Σ −ln p(target) over the targets that count. */
export interface RawTrainingLoss {
  status: RawStatus;
  loss: number;
}

export interface RawTrainingStep {
  /** 1, 2, … */
  step: number;
  learningRate: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  /** Of matrices and tables only. */
  weightDecay: number;
  /** 0 = no clipping. */
  maxNorm: number;
}

/** The norm of all gradients before clipping. */
export interface RawTrainingNorm {
  status: RawStatus;
  gradientNorm: number;
}

/** Rows [firstRow, firstRow + rowCount) of a tensor [rows, columns]; `enum class DecoderSlot`. */
export interface RawTensorRows {
  slot: number;
  layer: number;
  firstRow: number;
  rowCount: number;
}
