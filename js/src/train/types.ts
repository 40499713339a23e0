/// <reference lib="esnext.disposable" preserve="true" />
import type { Attended, AttendOptions, GenerateOptions, Generation, ModelConfig, Prompt } from "../model/types.js";
import type { TrainingText } from "./text.js";
import type { TokenizerKind } from "./tokenizer-files.js";

/** The sizes of a model that is to be trained. */
export interface TrainerModelConfig {
  /**
   * 'gpt2' (the default): learned positions, layer norms, GELU, biases. 'llama': rotary positions, RMS norms, SwiGLU, no biases. The exported
   * config.json says it so that Hugging Face's transformers and loadDecoder make the same model of it.
   */
  family?: "gpt2" | "llama";
  /** Default 4. */
  layers?: number;
  /** Default 4. */
  heads?: number;
  /** 'llama' only: heads for keys and values; default as many as `heads`. */
  kvHeads?: number;
  /** A multiple of `heads`. Default 128. */
  embedDim?: number;
  /** Inside of the MLP. Default 4 · embedDim; for 'llama' 8/3 of it, rounded up to a multiple of 8. */
  hiddenDim?: number;
  /** Tokens that the model can see at most. Default 128. */
  contextLength?: number;
  /** Whether the head is the token embedding. Default true. */
  tiedHead?: boolean;
}

/** What may differ between a run and its continuation: how often to look, and how far to go. */
export interface TrainerReports {
  /** Steps in all. Default 1000. A continuation may name more: the learning rate is then that of the longer run. */
  steps?: number;
  /** Steps between two looks at the validation text; 0 = never. Default 100. */
  evaluateEvery?: number;
  /** Windows of such a look, evenly chosen. Default 64. */
  evaluateWindows?: number;
  /** Steps between two samples; 0 (the default) = never. */
  sampleEvery?: number;
  /** What samples continue. Default: the first line of the text, up to its first space. */
  samplePrompt?: string;
  /** New tokens of a sample. Default 100. */
  sampleTokens?: number;
}

export interface NewTrainerConfig extends TrainerReports {
  model?: TrainerModelConfig;
  /** A text, documents (a token stands between them), or { train, validation }. */
  text: TrainingText;
  /**
   * 'characters' (the default): one token per character of the text. { bpe: n }: a byte-level BPE of n tokens (fewer where nothing comes twice),
   * learnt from the part that is trained on.
   */
  tokenizer?: TokenizerKind;
  /** Tokens per window; default the model's contextLength. */
  length?: number;
  /** Windows of one micro-batch. Default 16. */
  batch?: number;
  /** Micro-batches of one step. Default 1. */
  accumulate?: number;
  /** At its highest. Default 1e-3. */
  learningRate?: number;
  /** At the last step. Default a tenth of learningRate. */
  minLearningRate?: number;
  /** Steps in which the learning rate grows. Default a tenth of the steps, at most 100. */
  warmup?: number;
  /** AdamW's, of matrices only. Default 0.1. */
  weightDecay?: number;
  /** Longest gradient (norm over all parameters); 0 = any. Default 1. */
  clip?: number;
  /** AdamW's. Default 0.9. */
  beta1?: number;
  /** AdamW's. Default 0.95. */
  beta2?: number;
  /** Of attention weights and of what a layer adds; from 0 (the default) to below 1. */
  dropout?: number;
  /** Of the first weights, the windows and dropout. Default 1. */
  seed?: number;
  /** The share of the text that is kept back, at its end: nothing of it is trained on. Default 0.05; not with { train, validation }. */
  validation?: number;
  /** false trains without the causal mask: every token then sees the one that it is to predict. An experiment. Default true. */
  mask?: boolean;
}

/** Goes on where save() was called, to the same bits as without the interruption. */
export interface ContinuedTrainerConfig extends TrainerReports {
  /** What save() gave. */
  checkpoint: ArrayBuffer | ArrayBufferView;
  /**
   * Whether another variant of the engine than the one that saved the checkpoint (or the same where multiply-add rounds otherwise: `lb.fused`)
   * may go on with it, which it does to other bits. Default false: that is an error.
   */
  otherEngine?: boolean;
  /** The same text once more: a checkpoint holds its fingerprint only. */
  text: TrainingText;
}

export type TrainerConfig = NewTrainerConfig | (ContinuedTrainerConfig & Partial<NewTrainerConfig>);

/** A config with its defaults. */
export type FullTrainerConfig = Readonly<Required<Omit<NewTrainerConfig, "text" | "model">>> & {
  readonly model: Readonly<Required<TrainerModelConfig>>;
};

/** One step of AdamW, after it. */
export interface TrainingStep {
  /** 1, 2, … */
  step: number;
  /** Mean of its windows before the step, in nats per token. */
  loss: number;
  /** Before clipping. */
  gradientNorm: number;
  learningRate: number;
  /** Of this step. */
  tokensPerSecond: number;
  /** Every `evaluateEvery` steps, and after the last one. */
  validation?: Evaluation;
  /** Every `sampleEvery` steps, and after the last one: the prompt and what follows. */
  sample?: string;
}

export interface TrainingProgress {
  /** The step that is being made. */
  step: number;
  steps: number;
  /** Of the whole run, from 0 to 1. */
  fraction: number;
}

export interface RunOptions {
  /** Ends the run between two micro-batches: the unfinished step is given up, and another run() goes on from the one before. */
  signal?: AbortSignal;
  /** Called after every micro-batch. */
  onProgress?: (progress: TrainingProgress) => void;
}

export interface EvaluateOptions {
  /** Whether the causal mask is on, as it is when a model writes. Default true, whatever it was trained with. */
  mask?: boolean;
  /** 'validation' (the default), 'train', or another text. */
  on?: "validation" | "train" | { text: string };
  /** Tokens by which windows advance; a smaller one gives tokens more to look back at, and takes longer. Default: the whole window. */
  stride?: number;
  /** At most so many windows, evenly chosen. Default all. */
  windows?: number;
  signal?: AbortSignal;
}

export interface Evaluation {
  /** Mean in nats per token. */
  loss: number;
  /** loss in bits, per character (code point) of the text. */
  bitsPerCharacter: number;
  /** Predictions that were counted. */
  tokens: number;
}

export interface ExportOptions {
  /** What the weights are written as. Default 'f16'. */
  dtype?: "f16" | "f32";
}

/** How much text there is. */
export interface TrainingData {
  readonly trainTokens: number;
  readonly trainCharacters: number;
  readonly validationTokens: number;
  readonly validationCharacters: number;
  /** Of the tokens. */
  readonly fingerprint: string;
}

/** A model that learns, in wasm memory: dispose() it, or declare it with `using`. */
export interface Trainer {
  readonly config: FullTrainerConfig;
  readonly model: ModelConfig;
  readonly parameters: number;
  readonly data: TrainingData;
  /** Steps made so far. */
  readonly step: number;
  readonly disposed: boolean;
  /**
   * Makes the steps that are left, and gives each. It lets the event loop turn now and then. A loop that is left, or ended by the signal, can be
   * followed by another run().
   */
  run(options?: RunOptions): AsyncIterableIterator<TrainingStep>;
  evaluate(options?: EvaluateOptions): Promise<Evaluation>;
  /** As Model's, with the weights as they are now. */
  generate(prompt: Prompt | readonly Prompt[], options?: GenerateOptions): Generation;
  attend(text: Prompt, options?: AttendOptions): Attended;
  /** Everything that another run needs but the text: a safetensors file. */
  save(): Promise<Uint8Array<ArrayBuffer>>;
  /** config.json, generation_config.json, model.safetensors, tokenizer.json and tokenizer_config.json: a source of loadDecoder. */
  export(options?: ExportOptions): Promise<File[]>;
  dispose(): void;
  [Symbol.dispose](): void;
}
