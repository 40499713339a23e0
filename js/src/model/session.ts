import { fail, show } from "../errors.js";
import { checkBytes, Job, type Output } from "../heap.js";
import type { RawDecoderSession } from "../module-decoder.js";
import { Owned } from "../owned.js";
import type { Tensor } from "../types.js";
import type { Decoder } from "./decoder.js";
import { Sampler, type SamplerConfig } from "./sampler.js";

export interface SessionConfig {
  batch: number;
  /** Tokens per row, padding included; the memory is taken at once. */
  capacity: number;
  /** The most new tokens per row of one forward(): scratch memory is planned for it. */
  chunk: number;
  dtype?: "f32" | "int8";
  /** Windowed layers keep their window only. */
  rolling?: boolean;
}

export interface ForwardOptions {
  /** Valid tokens of each row, the others following them. */
  lengths?: Int32Array | undefined;
  /** [batch, length], 0 = padding on the left. */
  mask?: Uint8Array | undefined;
  /** 'last' leaves them in the session for sampling, 'all' returns them as well, 'none' skips the head. Default 'last'. */
  logits?: "none" | "last" | "all";
  /** Softmax weights of chosen layers (rising) and heads. */
  weights?: { layers: readonly number[]; heads: "all" | readonly number[] } | undefined;
  /** Logits read after chosen layers (rising), of the same tokens as `logits`. */
  lens?: readonly number[] | undefined;
}

export interface LayerWeights {
  readonly layer: number;
  /** The position of column 0: above 0 where a rolling cache has forgotten tokens. */
  readonly firstPosition: number;
  /** [batch, heads, length, columns]. */
  readonly tensor: Tensor;
}

export interface ForwardResult {
  /** [batch, length, vocabSize]. */
  logits?: Tensor;
  weights?: LayerWeights[];
  /** Per chosen layer [batch, vocabSize] or [batch, length, vocabSize]. */
  lens?: { layer: number; tensor: Tensor }[];
}

const LOGITS_OF = ["none", "last", "all"];
const TOKEN_OUT_OF_RANGE = 11;
const CONTEXT_EXCEEDED = 12;
const CACHE_FULL = 7;
const EVICTED = 9;

/** The sequences of one batch: what they have seen so far. */
export class DecoderSession extends Owned {
  readonly decoder: Decoder;
  readonly config: Readonly<Required<SessionConfig>>;
  /** Addresses that every step reads: a session stays where it is. */
  readonly #lengthsAt: number;
  readonly #stepTokensAt: number;
  /** Whether a generation goes on with it: what others appended would come in between. */
  busy = false;

  constructor(decoder: Decoder, config: SessionConfig) {
    super(decoder.heap, "The cache");
    this.decoder = decoder;
    this.config = Object.freeze({ dtype: "f32", rolling: false, ...config });
    const { heap } = decoder;
    const weights = decoder.weights().address;
    const shape: RawDecoderSession = { ...this.config, cacheType: this.config.dtype === "int8" ? 1 : 0 };
    const bytes = heap.raw.sessionBytes(weights, shape);
    checkBytes(bytes, "The cache");
    const block = heap.own(this, bytes, "the cache");
    const status = heap.raw.sessionCreate(weights, shape, block.address);
    if (status) {
      heap.release(block);
      fail("bad-option", `session: ${heap.raw.statusMessage(status)}.`);
    }
    this.hold(block);
    this.#lengthsAt = heap.raw.kvCacheLengths(heap.raw.sessionCache(block.address, 0));
    this.#stepTokensAt = heap.raw.sessionStepTokens(block.address);
  }

  /** Tokens of each row so far, padding included. */
  get lengths(): number[] {
    this.block();
    return Array.from(this.decoder.heap.ints(this.#lengthsAt, this.config.batch));
  }

  /** Padding tokens of each row: a token's position is its place less this. */
  get padding(): number[] {
    const { heap } = this.decoder;
    return Array.from(heap.ints(heap.raw.sessionPadding(this.block().address), this.config.batch));
  }

  /** Appends tokens [batch, length], row by row. After an error nothing has changed. */
  forward(tokens: Int32Array, options: ForwardOptions = {}): ForwardResult {
    const { heap, settings } = this.decoder;
    const { batch } = this.config;
    const length = tokens.length / batch;
    const session = this.block();
    const weights = this.decoder.weights();
    const { lengths, mask, logits = "last", weights: wanted, lens = [] } = options;
    const job = new Job(heap, "forward");
    const list = (values: readonly number[] | undefined) => values && job.input(Int32Array.from(values));
    const [given, counts, bits] = [tokens, lengths, mask].map((source) => source && job.input(source));
    const [weightLayers, lensLayers] = [list(wanted?.layers), list(lens)];
    const weightHeads = wanted && wanted.heads !== "all" ? list(wanted.heads) : undefined;
    const headCount = !wanted || wanted.heads === "all" ? settings.heads : wanted.heads.length;
    const columns = (wanted?.layers ?? []).map((layer) => heap.raw.sessionColumns(session.address, layer) + length);
    const firstPositions = (wanted?.layers ?? []).map((layer) => this.#firstPosition(layer));
    const weightRows = batch * headCount * length;
    const room = (elements: number, what: string): Output | undefined => {
      checkBytes(elements * 4, what);
      return elements > 0 ? job.output(elements) : undefined;
    };
    const logitRows = logits === "all" ? batch * length : batch;
    const results = {
      logits: logits === "all" ? room(logitRows * settings.vocabSize, "The logits") : undefined,
      weights: room(weightRows * columns.reduce((sum, n) => sum + n, 0), "The weights"),
      lens: logits === "none" ? undefined : room(lens.length * logitRows * settings.vocabSize, "The logits"),
    };
    job.run(undefined, (raw, at) => {
      const status = raw.decoderForward(weights.address, session.address, {
        tokens: at(given),
        length,
        tokenLengths: at(counts),
        tokenMask: at(bits),
        logitsOf: LOGITS_OF.indexOf(logits),
        logits: at(results.logits?.place),
        weights: at(results.weights?.place),
        weightLayers: at(weightLayers),
        weightLayerCount: wanted?.layers.length ?? 0,
        weightHeads: at(weightHeads),
        weightHeadCount: headCount,
        lens: at(results.lens?.place),
        lensLayers: at(lensLayers),
        lensLayerCount: lens.length,
      });
      this.#explain(status, tokens);
      return status;
    });

    const logitDims = [...(logits === "all" ? [batch, length] : [batch]), settings.vocabSize];
    let taken = 0;
    const take = (values: Float32Array, dims: number[]): Tensor => {
      const size = dims.reduce((product, n) => product * n, 1);
      const tensor = { data: values.slice(taken, taken + size), dims };
      taken += size;
      return tensor;
    };
    const result: ForwardResult = {};
    if (results.logits) result.logits = { data: results.logits.values!, dims: logitDims };
    if (results.weights) {
      const values = results.weights.values!;
      result.weights = wanted!.layers.map((layer, n) => ({
        layer,
        firstPosition: firstPositions[n]!,
        tensor: take(values, [batch, headCount, length, columns[n]!]),
      }));
    }
    taken = 0;
    if (results.lens) {
      const values = results.lens.values!;
      result.lens = lens.map((layer) => ({ layer, tensor: take(values, [...logitDims]) }));
    }
    return result;
  }

  /** The last tokens' logits, [batch, vocabSize]. */
  logits(): Tensor {
    const { heap, settings } = this.decoder;
    const dims = [this.config.batch, settings.vocabSize];
    const address = heap.raw.sessionStepLogits(this.block().address);
    return { data: heap.floats(address, dims[0]! * dims[1]!).slice(), dims };
  }

  /** For sample() and step(). */
  sampler(config: SamplerConfig): Sampler {
    return new Sampler(this.decoder.heap, { ...config, batch: this.config.batch }, this.decoder.settings.vocabSize);
  }

  /** Draws each row's next token by the last logits. */
  sample(sampler: Sampler): number[] {
    const { heap } = this.decoder;
    return this.#drawn(heap.raw.decoderSample(this.block().address, sampler.memory().address));
  }

  /** Appends the tokens that were drawn last, and draws the next ones: one call into wasm, which allocates nothing. */
  step(sampler: Sampler): number[] {
    const { heap } = this.decoder;
    const { address } = this.block();
    return this.#drawn(heap.raw.decoderStep(this.decoder.weights().address, address, sampler.memory().address));
  }

  /** Says what step() is to append, in place of what was drawn. */
  choose(tokens: readonly number[]): void {
    this.#stepTokens().set(tokens);
  }

  /** Forgets the tokens from place `length` on, of every row. */
  truncate(length: number): void {
    const { heap } = this.decoder;
    this.#explain(heap.raw.sessionTruncate(this.block().address, length), []);
  }

  /** Back to the tokens that the rows held before; of a rolling cache, as long as it has forgotten none of them. */
  rewind(lengths: readonly number[]): void {
    const { heap, settings } = this.decoder;
    const { address } = this.block();
    const { batch } = this.config;
    const padding = this.padding.map((count, row) => Math.min(count, lengths[row]!));
    heap.ints(heap.raw.sessionPadding(address), batch).set(padding);
    for (let layer = 0; layer < settings.layers; layer++)
      heap.ints(heap.raw.kvCacheLengths(heap.raw.sessionCache(address, layer)), batch).set(lengths);
  }

  reset(): void {
    this.decoder.heap.raw.sessionReset(this.block().address);
  }

  /** A session of its own with the same tokens. */
  clone(): DecoderSession {
    const copy = new DecoderSession(this.decoder, this.config);
    this.decoder.heap.copy(this.block(), copy.block());
    return copy;
  }

  #stepTokens(): Int32Array {
    this.block();
    return this.decoder.heap.ints(this.#stepTokensAt, this.config.batch);
  }

  #firstPosition(layer: number): number {
    const { heap } = this.decoder;
    const cache = heap.raw.sessionCache(this.block().address, layer);
    return Math.min(...heap.ints(heap.raw.kvCacheFirstPositions(cache), this.config.batch));
  }

  #drawn(status: number): number[] {
    const tokens = Array.from(this.#stepTokens());
    this.#explain(status, tokens);
    const row = tokens.findIndex((token) => token < 0);
    if (row >= 0)
      fail("bad-values", `The logits of row ${row} are NaN or −Infinity throughout: are the weights right?`);
    return tokens;
  }

  #explain(status: number, tokens: ArrayLike<number>): void {
    if (status === 0) return;
    const { heap, settings } = this.decoder;
    const { vocabSize, contextLength } = settings;
    const { capacity } = this.config;
    if (status === TOKEN_OUT_OF_RANGE) {
      const token = Array.from(tokens).find((id) => !(id >= 0 && id < vocabSize));
      fail("token-out-of-range", `Token ids are from 0 to ${vocabSize - 1}; received ${show(token)}.`);
    }
    const held = `the rows hold ${show(this.lengths)}, and ${tokens.length / this.config.batch} more do not fit`;
    if (status === CONTEXT_EXCEEDED)
      fail("context-exceeded", `The model's context is ${contextLength} tokens; ${held}.`);
    if (status === CACHE_FULL) fail("cache-full", `The cache has a capacity of ${capacity} tokens; ${held}.`);
    if (status === EVICTED) fail("evicted", "The rolling cache no longer has the tokens that are needed.");
    fail("core", `decoder: ${heap.raw.statusMessage(status)}.`);
  }
}
