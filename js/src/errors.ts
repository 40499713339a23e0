/** What went wrong, stable across versions: test `error.code`, show `error.message`. */
export type ErrorCode =
  // Options and configurations
  | "unknown-option"
  | "bad-option"
  | "embed-dim-not-divisible"
  | "kv-heads-not-divisor"
  // Tensors
  | "not-a-tensor"
  | "not-float"
  | "bad-dims"
  | "dims-data-mismatch"
  | "bad-values"
  | "detached-buffer"
  // Shapes of a call
  | "bad-rank"
  | "rank-mismatch"
  | "heads-missing"
  | "heads-mismatch"
  | "width-not-divisible"
  | "head-dim-mismatch"
  | "batch-mismatch"
  | "length-mismatch"
  | "axes-swapped"
  | "input-width"
  | "gradient-shape"
  | "memory-missing"
  | "stale-projection"
  // Masks, biases, positions, results
  | "not-a-mask"
  | "mask-is-float"
  | "mask-shape"
  | "bias-is-mask"
  | "bias-shape"
  | "query-offset-missing"
  | "bad-query-offset"
  | "bad-weights-request"
  | "bad-out"
  | "bad-parts"
  // Caches
  | "cache-mismatch"
  | "cache-full"
  | "cache-busy"
  | "evicted"
  | "rolling-window"
  | "invalid-cache"
  // Decoders
  | "token-out-of-range"
  | "context-exceeded"
  // Training
  | "text-too-short"
  | "invalid-checkpoint"
  | "checkpoint-mismatch"
  | "training-diverged"
  | "trainer-busy"
  // assertCausal
  | "not-causal"
  | "not-deterministic"
  // State dicts
  | "state-missing"
  | "state-unknown"
  | "state-shape"
  // Memory and lifetime
  | "disposed"
  | "other-instance"
  | "out-of-memory"
  | "too-large"
  // Loading
  | "simd-unsupported"
  | "relaxed-unsupported"
  | "threads-unsupported"
  | "variant-missing"
  | "wasm-unreachable"
  | "wasm-is-html"
  | "wasm-invalid"
  | "glue-unreachable"
  // Models
  | "model-unreachable"
  | "model-unknown"
  | "invalid-model"
  | "invalid-tokenizer"
  // Pictures of attention
  | "invalid-attention"
  | "attention-unreachable"
  // Workers
  | "worker-failed"
  // A refusal of the core that the checks above should have made: please report it
  | "core";

/** Every error that lookback throws by intent. */
export class LookbackError extends Error {
  override readonly name = "LookbackError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

export function fail(code: ErrorCode, message: string, cause?: unknown): never {
  throw new LookbackError(code, message, cause);
}

/** The sentence of most refusals. */
export function refuse(code: ErrorCode, where: string, accepted: string, received: unknown): never {
  fail(code, `${where} must be ${accepted}; received ${show(received)}.`);
}

/** A value as a message shows it: short, and never throwing. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return `[${value.slice(0, 8).map(showItem).join(", ")}${value.length > 8 ? ", …" : ""}]`;
  return showItem(value);
}

function showItem(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 40));
  if (!/object|function/.test(typeof value) || value === null) return String(value);
  const kind = kindOf(value);
  return `${/^[AEIO]/.test(kind) ? "an" : "a"} ${kind}`;
}

/** 'Float32Array', 'Array', 'Object', …: the same for objects of every realm (iframes, workers, Jest). */
export function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

export const shape = (dims: readonly number[]): string => `[${dims.join(", ")}]`;

export function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | null)?.message;
  return typeof message === "string" ? message : String(error);
}
