/** What the chapter and its worker say to each other. All of it is small: a token at a time, a row of weights at a time. */
import type { Candidate, FinishReason } from "lookback/model";

/** A model that comes with the package, or files of the reader's, which stay on the machine. */
export type Source = { readonly bundled: string } | { readonly files: readonly File[] };

export interface Sampling {
  readonly temperature: number;
  /** 0 = all. */
  readonly topK: number;
  readonly topP: number;
  readonly seed: number;
}

/** Whose attention is shown; null = the mean over all of them. */
export interface Look {
  readonly layer: number | null;
  readonly head: number | null;
}

export interface ModelFacts {
  readonly name: string;
  readonly family: string;
  readonly parameters: number;
  readonly layers: number;
  readonly heads: number;
  readonly contextLength: number;
  readonly vocabSize: number;
  readonly variant: string;
}

export interface ReadText {
  readonly ids: number[];
  readonly texts: string[];
  /** So many of them, at the start, begin a text for this model and are none of its words. */
  readonly special: number;
}

/** A new token: what else it might have been, and how the token before it looked back, at all up to itself. */
export interface Written {
  readonly id: number;
  readonly text: string;
  readonly candidates: readonly Candidate[];
  readonly row: Float32Array;
}

/** Every question has one answer. */
export interface Questions {
  load: { ask: { readonly source: Source }; answer: ModelFacts };
  read: { ask: { readonly text: string }; answer: ReadText };
  /** Rows of weights, one after another: that of token 1 has one number, that of token 2 two, … */
  look: { ask: { readonly ids: readonly number[]; readonly look: Look }; answer: Float32Array };
}

export type Order =
  /** A new text from here; nothing is written yet. */
  | { order: "begin"; run: number; ids: readonly number[]; sampling: Sampling; maxTokens: number }
  /** Writes on, with at least so many milliseconds from word to word. */
  | { order: "go"; pace: number }
  | { order: "step" }
  | { order: "pause" }
  | { order: "attention"; look: Look };

export type ToWorker =
  | { [Q in keyof Questions]: { question: Q; call: number; ask: Questions[Q]["ask"] } }[keyof Questions]
  | Order;

export type FromWorker =
  | { type: "answer"; call: number; answer: Questions[keyof Questions]["answer"] }
  | { type: "failed"; call: number; message: string }
  | { type: "loading"; loaded: number; total: number }
  | { type: "written"; run: number; tokens: readonly Written[]; tokensPerSecond: number; look: Look }
  | { type: "paused"; run: number }
  | { type: "ended"; run: number; finish: FinishReason }
  | { type: "broken"; run: number; message: string };
