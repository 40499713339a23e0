import { fail } from "../errors.js";
import { type Block, type Heap, Job } from "../heap.js";
import { Owned } from "../owned.js";

export interface SamplerConfig {
  /** 0 is greedy: the most probable token, the first of equals. Default 1. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  /** How many candidates are reported, with the entropy; 0 (the default) = nothing. */
  candidates?: number;
}

export interface Candidates {
  /** The most probable tokens before top-k, top-p and min-p, by falling probability. */
  readonly candidates: { id: number; probability: number }[];
  /** Of the whole distribution, in nats. */
  readonly entropy: number;
}

/** How next tokens are drawn, and what has been drawn so far. */
export class Sampler extends Owned {
  readonly #heap: Heap;
  readonly #candidates: number;

  constructor(heap: Heap, config: SamplerConfig & { batch: number }, vocabSize: number) {
    super(heap, "The sampler");
    this.#heap = heap;
    const defaults = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1, candidates: 0 };
    const options = { ...defaults, ...config, vocabSize };
    this.#candidates = options.candidates;
    const block = heap.own(this, heap.raw.samplerBytes(options), "the sampler");
    const status = heap.raw.samplerCreate(options, block.address);
    if (status) {
      heap.release(block);
      fail("bad-option", `sampler: ${heap.raw.statusMessage(status)}.`);
    }
    this.hold(block);
  }

  /** Starts a row anew. The n-th token drawn depends on the seed (a safe integer), n and the logits only. */
  begin(row: number, seed: number): void {
    const low = ((seed % 2 ** 32) + 2 ** 32) % 2 ** 32;
    const high = ((Math.floor(seed / 2 ** 32) % 2 ** 32) + 2 ** 32) % 2 ** 32;
    this.#heap.raw.samplerBegin(this.block().address, row, low, high);
  }

  /** Tokens that count for the repetition penalty, the prompt's say. */
  observe(row: number, tokens: Int32Array): void {
    const { address } = this.block();
    const job = new Job(this.#heap, "observe");
    const given = job.input(tokens);
    job.run(undefined, (raw, at) => raw.samplerObserve(address, row, at(given), tokens.length));
  }

  /** Of a row's last draw. */
  report(row: number): Candidates {
    const { raw } = this.#heap;
    const { address } = this.block();
    const ids = this.#heap.ints(raw.samplerCandidateIds(address, row), this.#candidates);
    const probabilities = this.#heap.floats(raw.samplerCandidateProbabilities(address, row), this.#candidates);
    const candidates = Array.from(ids, (id, n) => ({ id, probability: probabilities[n]! })).filter(({ id }) => id >= 0);
    return { candidates, entropy: raw.samplerEntropy(address, row) };
  }

  /** Its memory, while it lives. */
  memory(): Block {
    return this.block();
  }
}
