import { fail, refuse } from "../errors.js";
import { flag, later, oneOf, positiveInteger, readOptions } from "../options.js";
import { DISPOSE } from "../owned.js";
import type { Tensor } from "../types.js";
import type { Decoder } from "./decoder.js";
import { atOnce, CHUNK, feed } from "./feed.js";
import { RunningGeneration } from "./generate.js";
import { planGeneration } from "./generate-options.js";
import { makeSession, OwnedModelCache } from "./model-cache.js";
import type { OpenedModel } from "./opened.js";
import { isBatch, readChoice, readChosen, readIds } from "./requests.js";
import type { DecoderSession } from "./session.js";
import { isLayerSlot, parameterCount, slotShape, slotsOf } from "./slots.js";
import { isVector } from "./tensor-names.js";
import { type TextTokenizer, tokenTexts } from "./tokenizer.js";
import type { Attended, ForwardResult, Generation, Model, ModelCache, ModelConfig, ModelInfo } from "./types.js";

const FORWARD = {
  logits: oneOf("last", "all"),
  weights: later<unknown>(),
  lens: later<unknown>(),
  cache: later<unknown>(),
};
const ATTEND = { layers: later<unknown>(), heads: later<unknown>() };
const SPECIAL = { special: flag };

/** What a model is besides its weights. */
export type NamedModel = Pick<OpenedModel, "name" | "family" | "settings" | "tokenizer" | "endIds">;

export class LoadedModel implements Model {
  readonly name: string;
  readonly config: ModelConfig;
  readonly #decoder: Decoder;
  readonly #tokenizer: TextTokenizer;
  readonly #endIds: readonly number[];

  /** Takes the decoder over. */
  constructor(decoder: Decoder, { name, family, settings, tokenizer, endIds }: NamedModel) {
    this.name = name;
    this.config = Object.freeze({ family, ...settings });
    this.#decoder = decoder;
    this.#tokenizer = tokenizer;
    this.#endIds = endIds;
  }

  get disposed(): boolean {
    return this.#decoder.disposed;
  }

  generate(prompt: unknown, options?: unknown): Generation {
    this.#alive();
    const prompts = isBatch(prompt) ? prompt : [prompt];
    const plan = planGeneration(options, this.#decoder, prompts.length);
    // What goes on does not begin anew.
    const special = plan.session === undefined || plan.session.lengths.every((length) => length === 0);
    const ids = prompts.map((one, row) =>
      this.#ids(one, isBatch(prompt) ? `generate: prompt ${row}` : "generate: the prompt", special),
    );
    const tools = { decoder: this.#decoder, tokenizer: this.#tokenizer, endIds: this.#endIds };
    return new RunningGeneration(tools, plan, ids);
  }

  forward(ids: unknown, given?: unknown): ForwardResult {
    this.#alive();
    const rows = (isBatch(ids) ? ids : [ids]).map((row) => readIds(row, this.config.vocabSize, "forward: ids"));
    if (rows.some(({ length }) => length === 0)) fail("bad-option", "forward: ids: a row has no tokens.");
    const { logits = "last", weights, lens, cache } = readOptions(given, FORWARD, "forward");
    const { settings } = this.#decoder;
    const request = {
      logits,
      weights: weights === undefined ? undefined : readChosen(weights, settings, "forward: weights"),
      lens: lens === undefined ? undefined : readChoice(lens, settings.layers, "forward: lens").sort((a, b) => a - b),
    };
    const session = cache === undefined ? undefined : OwnedModelCache.read(cache, this.#decoder, rows.length);
    return this.#inSession(session, rows, (used) => atOnce(feed(used, rows, request)) as ForwardResult);
  }

  attend(text: unknown, given?: unknown): Attended {
    this.#alive();
    const { settings } = this.#decoder;
    const chosen = readChosen(readOptions(given, ATTEND, "attend"), settings, "attend");
    const ids = this.#ids(text, "attend: the text", true);
    if (ids.length === 0) fail("bad-option", "attend: the text has no tokens.");
    const weights = this.#inSession(undefined, [ids], (session) => {
      return atOnce(feed(session, [ids], { logits: "none", weights: chosen })).weights!;
    });
    const area = ids.length ** 2;
    const map = (layer: number, head: number): Tensor => {
      const from = (layer * chosen.heads.length + head) * area;
      return { data: weights.data.subarray(from, from + area), dims: [ids.length, ids.length] };
    };
    return {
      ids,
      tokens: tokenTexts(this.#tokenizer, ids),
      layers: [...chosen.layers],
      heads: [...chosen.heads],
      weights: chosen.layers.map((_, layer) => chosen.heads.map((_, head) => map(layer, head))),
    };
  }

  encode(text: unknown, given?: unknown): number[] {
    this.#alive();
    const { special = true } = readOptions(given, SPECIAL, "encode");
    return this.#encode(text, "encode: the text", special);
  }

  decode(ids: unknown, given?: unknown): string {
    this.#alive();
    const { special = false } = readOptions(given, SPECIAL, "decode");
    return this.#tokenizer.decode(readIds(ids, this.config.vocabSize, "decode: ids"), special);
  }

  tokenize(text: unknown, given?: unknown): string[] {
    this.#alive();
    const { special = true } = readOptions(given, SPECIAL, "tokenize");
    return tokenTexts(this.#tokenizer, this.#encode(text, "tokenize: the text", special));
  }

  cache(config?: unknown): ModelCache {
    this.#alive();
    return new OwnedModelCache(this.#decoder, config);
  }

  inspect(given?: unknown): ModelInfo {
    this.#alive();
    const { context = this.config.contextLength } = readOptions(given, { context: positiveInteger }, "inspect");
    if (context > this.config.contextLength)
      refuse("bad-option", "inspect: context", `at most the model's context, ${this.config.contextLength}`, context);
    const decoder = this.#decoder;
    const session = (cacheType: number) =>
      decoder.heap.raw.sessionBytes(decoder.weights().address, {
        batch: 1,
        capacity: context,
        chunk: Math.min(CHUNK, context),
        cacheType,
        rolling: false,
      });
    return {
      name: this.name,
      config: this.config,
      parameters: parameterCount(this.config),
      tensors: slotsOf(this.config).map((slot) => {
        const [rows, columns] = slotShape(this.config, slot)!;
        return {
          name: slot,
          dims: isVector(slot) ? [rows] : [rows, columns],
          count: isLayerSlot(slot) ? this.config.layers : 1,
        };
      }),
      context,
      memory: { weights: decoder.bytes, f32: session(0), int8: session(1) },
    };
  }

  dispose(): void {
    this.#decoder.dispose();
  }

  [DISPOSE](): void {
    this.dispose();
  }

  #alive(): void {
    this.#decoder.block();
  }

  /** `use` with the given session, or with one for the time of it. */
  #inSession<T>(
    session: DecoderSession | undefined,
    rows: readonly (readonly number[])[],
    use: (session: DecoderSession) => T,
  ): T {
    if (session) return use(session);
    const length = Math.max(...rows.map((row) => row.length));
    const { contextLength } = this.config;
    if (length > contextLength)
      fail("context-exceeded", `The model's context is ${contextLength} tokens; received ${length}.`);
    const own = makeSession(this.#decoder, rows.length, length, "f32");
    try {
      return use(own);
    } finally {
      own.dispose();
    }
  }

  #ids(prompt: unknown, where: string, special: boolean): number[] {
    if (typeof prompt === "string") return this.#encode(prompt, where, special);
    return readIds(prompt, this.config.vocabSize, where, "a text or a list of token ids");
  }

  #encode(text: unknown, where: string, special: boolean): number[] {
    if (typeof text !== "string") return refuse("bad-option", where, "a text", text);
    return readIds(this.#tokenizer.encode(text, special), this.config.vocabSize, where);
  }
}
