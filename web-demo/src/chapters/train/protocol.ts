/** What the chapter and a run's worker say to each other. A run is one model that learns, in a worker of its own. */

/** The same for both runs of an experiment but for the mask. */
export interface RunConfig {
  readonly text: string;
  /** Whose maps are drawn as the heads form. */
  readonly sentence: string;
  /** What the model continues, to be seen writing. */
  readonly prompt: string;
  readonly layers: number;
  readonly heads: number;
  readonly embedDim: number;
  readonly contextLength: number;
  readonly batch: number;
  readonly steps: number;
  readonly learningRate: number;
  readonly seed: number;
  readonly validation: number;
  readonly mask: boolean;
  /** Steps between two looks at the validation text, at the maps, and at what the model writes. */
  readonly every: number;
}

export interface RunFacts {
  readonly parameters: number;
  readonly vocabSize: number;
  readonly trainTokens: number;
  readonly validationTokens: number;
  /** Tokens of a step. */
  readonly tokensPerStep: number;
  readonly variant: string;
}

export interface StepNews {
  readonly step: number;
  /** Nats per token of the windows of this step, seen as the run sees them: with its mask or without. */
  readonly loss: number;
  /** Nats per token of the validation text, always with the mask: as it is when a model writes. */
  readonly validation: number | null;
}

/** The state of a model after a step, to be looked at. */
export interface Snapshot {
  readonly step: number;
  readonly sample: string;
  readonly tokens: readonly string[];
  /** [layers, heads, L, L] */
  readonly maps: Float32Array;
}

/** `turns`: what runs that take turns have in common; null = the machine has a processor for each, and one for the page. */
export type ToRun = { order: "start"; config: RunConfig; turns: string | null } | { order: "stop" };

export type FromRun =
  | { type: "started"; facts: RunFacts }
  | { type: "steps"; steps: readonly StepNews[]; tokensPerSecond: number }
  | { type: "snapshot"; snapshot: Snapshot }
  | { type: "ended"; whole: boolean }
  | { type: "failed"; message: string };
