/** The public types of gradients and of what only training asks for. */
import type {
  Asked,
  AttentionOptions,
  FloatTensor,
  LayerForwardOptions,
  OutTarget,
  Returned,
  Tensor,
  WasmTensor,
} from "./types.js";

export interface Dropout {
  /** In [0, 1); 0 = none. */
  p: number;
  /** An integer. */
  seed: number;
}

/** Those of the forward call (what only chooses its results is not looked at), with its results. */
export interface AttentionBackwardOptions extends Omit<AttentionOptions, "cache" | "logSumExp" | "out"> {
  /** The forward call's, in its layout. */
  output: FloatTensor;
  /** The forward call's, [B, H, Lq]: ask for it with `logSumExp: true`. */
  logSumExp: FloatTensor;
  /** The gradient of the loss with respect to `output`, in its layout. */
  gradOutput: FloatTensor;
  /** Returns the gradient of `bias`, in its own dims: summed where it is broadcast. */
  gradBias?: boolean;
  /** Returns the gradient of `sinks`, [H]. */
  gradSinks?: boolean;
  /** Writes gradients into the caller's arrays or wasm tensors instead of new ones. */
  out?: { gradQ?: OutTarget; gradK?: OutTarget; gradV?: OutTarget; gradBias?: OutTarget; gradSinks?: OutTarget };
}

/** In the layouts of q, k and v; `gradBias` and `gradSinks` are there where the options ask for them. */
export type AttentionGradients<Options = AttentionBackwardOptions> = {
  [Name in "gradQ" | "gradK" | "gradV"]: Returned<Options, Name>;
} & Asked<Options, "gradBias", true, Returned<Options, "gradBias">> &
  Asked<Options, "gradSinks", true, Returned<Options, "gradSinks">>;

/** Those of the forward call (what only chooses its results is not looked at); nothing that is kept from earlier calls. */
export interface LayerBackwardOptions extends Omit<LayerForwardOptions, "cache" | "memory"> {
  memory?: FloatTensor;
  /** The gradient of the loss with respect to the output. */
  gradOutput: FloatTensor;
  /** Writes gradients into the caller's arrays or wasm tensors instead of new ones: all, or those that are named. */
  out?: {
    gradX?: OutTarget;
    gradMemory?: OutTarget;
    gradMemoryValues?: OutTarget;
    parameters?: Readonly<Record<string, OutTarget>>;
  };
}

export interface LayerGradients<Options = LayerBackwardOptions> {
  /** As x; in self-attention with the share of keys and values. */
  gradX: Returned<Options, "gradX">;
  /** As `memory`, where one was given. */
  gradMemory?: Returned<Options, "gradMemory">;
  /** As `memoryValues`, where they were given. */
  gradMemoryValues?: Returned<Options, "gradMemoryValues">;
  /** By PyTorch's names, as `state()`. */
  parameters: Record<string, ReturnedParameter<Options>>;
}

/** Which of them are wasm tensors is known by name to the caller alone. */
type ReturnedParameter<Options> = Options extends { out: { parameters: infer Targets } }
  ? Targets extends Readonly<Record<string, Exclude<OutTarget, WasmTensor>>>
    ? Tensor
    : Tensor | WasmTensor
  : Tensor;
