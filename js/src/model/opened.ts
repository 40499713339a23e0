import type { Tally, WeightSink } from "./pour.js";
import type { DecoderSettings } from "./settings.js";
import type { TextTokenizer } from "./tokenizer.js";

/** A model whose small files have been read and checked; its weights are still where they were. */
export interface OpenedModel {
  readonly name: string;
  /** model_type, or 'llama2.c'. */
  readonly family: string;
  readonly settings: DecoderSettings;
  readonly tokenizer: TextTokenizer;
  /** Generation ends at these. */
  readonly endIds: readonly number[];
  /** Bytes of weights in the files. */
  readonly weightBytes: number;
  pour(sink: WeightSink, tally: Tally): Promise<void>;
  close(): Promise<void>;
}
