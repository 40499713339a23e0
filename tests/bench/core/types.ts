/** What the parts of the benchmark hand to each other. Types only: nothing here exists at run time. */

export type Variant = "simd" | "relaxed";

/** One calculation that is timed. Attention works on float32 [heads, length, headDim], batch 1. */
export type Workload = {
  readonly id: string;
  readonly title: string;
  readonly contestants?: "ours" | "one thread";
} & Calculation;

export type Unit = "GFLOP/s" | "GB/s" | "tokens/s";

export type Calculation =
  | ({ readonly kind: "attention" } & AttentionShape)
  /** The gradients of queries, keys and values, given the output's and what the forward pass has left. */
  | { readonly kind: "backward"; readonly heads: number; readonly headDim: number; readonly length: number }
  | {
      /** One query against a cache that is already filled. */
      readonly kind: "decode";
      readonly heads: number;
      readonly headDim: number;
      readonly keyLength: number;
      readonly type: "f32" | "int8";
    }
  | { readonly kind: "linear"; readonly rows: number; readonly inputs: number; readonly outputs: number }
  /** One row through a linear layer, as a decoder does: reading the weight is what limits. */
  | { readonly kind: "row"; readonly inputs: number; readonly outputs: number; readonly type: "f32" | "int8" }
  /** Projections, causal attention and output projection. */
  | { readonly kind: "layer"; readonly embedDim: number; readonly heads: number; readonly length: number }
  /** One token of a GPT-2 after `held` others, to its logits: every weight is read once. */
  | ({ readonly kind: "step" } & StepShape)
  /** A text of a small trained model, drawn token by token. */
  | { readonly kind: "generate"; readonly tokens: number; readonly temperature: number }
  /** A batch through a GPT-2 and back, and one step of AdamW; positions are as many as tokens in a row. */
  | ({ readonly kind: "training" } & TrainingShape)
  /** The machine's rate of multiply-adds, and of reading memory. */
  | { readonly kind: "multiply-add" }
  | { readonly kind: "read"; readonly bytes: number };

export interface AttentionShape {
  readonly heads: number;
  readonly headDim: number;
  readonly length: number;
  readonly causal: boolean;
  /** A dense boolean mask [length, length] as well. */
  readonly mask?: boolean;
  /** The weights are returned, too: into an array of the caller, or into a new one at each call. */
  readonly weights?: "reused" | "fresh";
}

export interface StepShape {
  readonly layers: number;
  readonly embedDim: number;
  readonly heads: number;
  readonly vocabulary: number;
  readonly positions: number;
  readonly held: number;
  readonly type: "f32" | "int8";
}

export interface TrainingShape {
  readonly layers: number;
  readonly embedDim: number;
  readonly heads: number;
  readonly vocabulary: number;
  readonly length: number;
  readonly batch: number;
}

export interface BenchCase {
  readonly id: string;
  readonly title: string;
  readonly workloads: readonly Workload[];
  /** Too long for `--quick`, where these take its place. */
  readonly quick?: readonly Workload[];
}

/** Arrays by name: queries, keys, values, mask; input, weight, bias; … Made from a fixed seed. */
export type Inputs = Readonly<Record<string, Float32Array | Uint8Array>>;

export interface Output {
  /** Rows as the reference has them: [heads, length, headDim], [rows, outputs] or [length, embedDim]. */
  readonly output: Float32Array;
  /** [heads, length, length]. */
  readonly weights?: Float32Array;
}

/** A calculation made ready; `call` is what is timed: the public call, from float32 arrays to float32 arrays. */
export interface Prepared<Result = unknown> {
  call(): Result | Promise<Result>;
  /** What a call gave, in the reference's layout; not timed. */
  read?(result: Result): Output;
  /** What a call does, where that is not the workload's count. */
  readonly work?: Work;
  dispose?(): void;
}

export interface Work {
  /** Multiplications and additions; of the visible half only where attention is causal. */
  readonly operations: number;
  /** Bytes that have to be read at least. */
  readonly bytes: number;
  readonly tokens?: number;
}

export interface Session {
  prepare(workload: Workload, inputs: Inputs): Promise<Prepared> | Prepared;
  close?(): void;
}

export interface ContestantModule {
  open(contestant: Contestant, env: Environment): Promise<Session>;
}

export interface Contestant {
  readonly id: string;
  readonly role: "ceiling" | "ours" | "peer";
  readonly variant?: Variant;
  readonly threads?: number;
  /** Only these kinds of workload have a row of it. */
  readonly kinds?: readonly Calculation["kind"][];
  readonly browser?: boolean;
  load(): Promise<ContestantModule>;
}

/** What differs between Node and a page. */
export interface Environment {
  /** A file of the repository. */
  bytes(path: string): Promise<Uint8Array<ArrayBuffer>>;
  /** An ONNX model of the calculation, its weights inside. */
  model(workload: Workload, inputs: Inputs): Promise<Uint8Array>;
  /** Milliseconds that the process has computed, on all its threads. */
  cpu?(): number;
  collectGarbage?(): void;
  /** Called before something that may take the process down with it. */
  entering(contestant: string): void;
}

export interface Settings {
  readonly rounds: number;
  /** A sample repeats short calls for so long. */
  readonly sampleMilliseconds: number;
  readonly warmUpMilliseconds: number;
  readonly warmUpCalls: number;
  /** Contestants that are slow take part in fewer rounds, so that each needs no more than this. */
  readonly budgetMilliseconds: number;
}

export interface Samples {
  /** Milliseconds of a call, one number for each sample. */
  readonly wall: number[];
  readonly cpu: number[];
  /** Calls in a sample. */
  readonly calls: number;
}

/** A contestant at a workload: measured, or why not. */
export interface RawRow {
  readonly workload: string;
  readonly contestant: string;
  readonly status: "measured" | "wrong" | "not available";
  readonly reason?: string;
  /** Largest absolute difference from the float64 reference, and what is allowed. */
  readonly difference?: number;
  readonly tolerance?: number;
  readonly work?: Work;
  readonly samples?: Samples;
}

export interface Spread {
  readonly median: number;
  readonly lowerQuartile: number;
  readonly upperQuartile: number;
  readonly minimum: number;
  readonly count: number;
}

/** A row as it is reported. Times are milliseconds of a call. */
export interface Row extends Omit<RawRow, "samples"> {
  readonly role: Contestant["role"];
  readonly variant?: Variant;
  readonly threads?: number;
  readonly wall?: Spread;
  /** Median; of a single thread only. */
  readonly cpu?: number;
  /** GFLOP/s, GB/s where reading memory is what limits, or tokens/s of a text. */
  readonly rate?: number;
  /** Of the ceiling measured between the same samples; and the same by CPU time, which other programs disturb less. */
  readonly share?: number;
  readonly cpuShare?: number;
  /** Of ours: how many times faster than each peer. */
  readonly speedups?: Readonly<Record<string, number>>;
}

export interface CaseReport {
  readonly id: string;
  readonly title: string;
  readonly workloads: readonly { readonly id: string; readonly title: string; readonly unit: Unit }[];
  readonly rows: readonly Row[];
}

export interface SizeReport {
  readonly name: string;
  readonly group: "wasm" | "typescript" | "glue" | "threaded glue";
  readonly bytes: number;
  readonly how: "raw" | "minified and gzipped";
}

export interface StartReport {
  readonly contestant: string;
  readonly reason?: string;
  /** Milliseconds in a fresh process: the call alone, and with the import before it. */
  readonly call?: Spread;
  readonly withImport?: Spread;
}

export interface MemoryReport {
  readonly variant: Variant;
  readonly length: number;
  readonly reason?: string;
  /** What a call's process grew by, inputs and outputs apart. */
  readonly extraBytes?: number;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly system: string;
  /** Node.js, or the browser. */
  readonly engine: string;
  readonly v8: string;
  readonly versions: Readonly<Record<string, string>>;
  /** Before and after: other programs that ran at the same time spoil a benchmark. */
  readonly load: readonly [before: number, after: number];
}

export interface Verdict {
  readonly case: string;
  readonly text: string;
  readonly variant?: Variant;
  readonly value?: number;
  readonly unit: string;
  readonly met: boolean | null;
}

export interface Report {
  readonly format: 1;
  readonly date: string;
  readonly quick: boolean;
  readonly machine: Machine;
  readonly cases: readonly CaseReport[];
  readonly sizes?: readonly SizeReport[];
  readonly start?: readonly StartReport[];
  readonly memory?: readonly MemoryReport[];
  readonly verdicts: readonly Verdict[];
}
