import type { FloatTensor, OutTarget } from "./types.js";

/** How a model trained on short texts is stretched to long ones. */
export type RotaryScaling =
  | { /** Divides every frequency by `factor`. */ type: "linear"; factor: number }
  | { /** base · factor^(dims / (dims − 2)). */ type: "ntk"; factor: number }
  | {
      /** Llama 3.1: long waves are stretched by `factor`, short ones kept. */
      type: "llama3";
      factor: number;
      /** The length that the model was trained for. */
      originalLength: number;
      /** Default 1. */
      lowFrequencyFactor?: number;
      /** Default 4. */
      highFrequencyFactor?: number;
    }
  | {
      /** NTK by parts, with cos and sin × `attentionFactor`. */
      type: "yarn";
      factor: number;
      originalLength: number;
      /** Default 32. */
      betaFast?: number;
      /** Default 1. */
      betaSlow?: number;
      /** Default 0.1·ln(factor) + 1. */
      attentionFactor?: number;
    };

/** Rotary position embedding: pair i of a row at position p is turned by p · base^(−2i/dims). */
export interface RotaryEmbedding {
  /** How many of a head's first elements are turned: even; default all. */
  dims?: number;
  /** Default 10000. */
  base?: number;
  /** Pairs (2i, 2i + 1) (GPT-J, llama2.c) instead of the halves (i, i + dims/2) (GPT-NeoX, Llama in Hugging Face); default false. */
  interleaved?: boolean;
  scaling?: RotaryScaling;
}

/** Positions: one per slot ([L]), or [B, L] row by row. */
export type Positions =
  | readonly number[]
  | Int32Array
  | BigInt64Array
  | { readonly data: readonly number[] | Int32Array | BigInt64Array; readonly dims: readonly number[] };

export interface RotaryOptions extends RotaryEmbedding {
  /** Required for 2-D and 3-D inputs. */
  heads?: number;
  /** Default slot + `offset`. */
  positions?: Positions;
  /** The position of slot 0, for all or one per batch row; default 0. */
  offset?: number | readonly number[] | Int32Array;
  /** Tables instead of base and scaling, as ONNX's RotaryEmbedding has them: [positions, dims/2], or [B, L, dims/2] as they are. */
  cos?: FloatTensor;
  sin?: FloatTensor;
  /** Writes the result into the caller's array or wasm tensor, which may be the input. */
  out?: { output?: OutTarget };
}
