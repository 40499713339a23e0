import { fail, show } from "../errors.js";
import { breathe } from "./breath.js";
import type { Decoder } from "./decoder.js";
import { feed } from "./feed.js";
import type { GenerationPlan } from "./generate-options.js";
import { makeSession, refuseBusy } from "./model-cache.js";
import type { Sampler } from "./sampler.js";
import type { DecoderSession, LayerWeights } from "./session.js";
import { StopText } from "./stop-text.js";
import type { TextStream, TextTokenizer } from "./tokenizer.js";
import type { FinishReason, Generation, GenerationStats, GenerationStep, StepWeights } from "./types.js";

/** One prompt on its way. */
interface Row {
  readonly ids: number[];
  readonly stream: TextStream;
  readonly stop: StopText;
  newTokens: number;
  text: string;
  /** Drawn, or of the prompt, and not in the session yet. */
  pending: number;
  finish: FinishReason | undefined;
}

/** What a generation works with. */
export interface GenerationTools {
  readonly decoder: Decoder;
  readonly tokenizer: TextTokenizer;
  readonly endIds: readonly number[];
}

export class RunningGeneration implements Generation {
  readonly stats: GenerationStats;
  readonly #tools: GenerationTools;
  readonly #plan: GenerationPlan;
  readonly #rows: readonly Row[];
  /** Tokens of each row that the cache held before. */
  readonly #held: readonly number[];
  readonly #steps: AsyncGenerator<GenerationStep, void, undefined>;

  constructor(tools: GenerationTools, plan: GenerationPlan, prompts: readonly (readonly number[])[]) {
    const { contextLength } = tools.decoder.settings;
    this.#tools = tools;
    this.#plan = plan;
    const held = plan.session?.lengths ?? prompts.map(() => 0);
    const room = Math.min(contextLength, plan.session?.config.capacity ?? contextLength);
    this.#held = held;
    prompts.forEach((ids, row) => {
      if (ids.length === 0) fail("bad-option", `generate: prompt ${row} is empty: there is no token to start from.`);
      if (held[row]! + ids.length > room) {
        const before = held[row]! > 0 ? `${held[row]} in the cache and ` : "";
        fail(
          "context-exceeded",
          `generate: ${before}${ids.length} tokens in prompt ${row}, but there is room for ${room}.`,
        );
      }
    });
    this.#rows = prompts.map((ids) => ({
      ids: [...ids],
      stream: tools.tokenizer.stream(ids),
      stop: new StopText(plan.stops),
      newTokens: 0,
      text: "",
      pending: ids.at(-1)!,
      finish: undefined,
    }));
    const promptTokens = prompts.reduce((sum, ids) => sum + ids.length, 0);
    this.stats = { promptTokens, newTokens: 0, promptSeconds: 0, seconds: 0, tokensPerSecond: 0, seed: plan.seeds[0]! };
    this.#steps = this.#run();
  }

  [Symbol.asyncIterator](): AsyncIterator<GenerationStep, void, undefined> {
    return this.#steps;
  }

  async texts(): Promise<string[]> {
    for await (const _ of this.#steps);
    return this.#rows.map(({ text }) => text);
  }

  async text(): Promise<string> {
    return (await this.texts())[0]!;
  }

  async *#run(): AsyncGenerator<GenerationStep, void, undefined> {
    const { decoder } = this.#tools;
    const plan = this.#plan;
    const longest = this.#rows.reduce((most, { ids }) => Math.max(most, ids.length), 0);
    const capacity = Math.min(decoder.settings.contextLength, longest + plan.maxTokens);
    plan.signal?.throwIfAborted();
    this.#checkCache(plan.session);
    const session = plan.session ?? makeSession(decoder, this.#rows.length, capacity, plan.dtype);
    let sampler: Sampler | undefined;
    session.busy = true;
    try {
      sampler = this.#makeSampler(session);
      const start = performance.now();
      await this.#readPrompts(session);
      const read = performance.now();
      this.stats.promptSeconds = (read - start) / 1000;
      while (this.#rows.some(({ finish }) => finish === undefined)) {
        plan.signal?.throwIfAborted();
        const steps = this.#step(session, sampler);
        this.stats.newTokens += steps.length;
        this.stats.seconds = (performance.now() - read) / 1000;
        this.stats.tokensPerSecond = this.stats.newTokens / this.stats.seconds;
        // One by one: yield* would wrap the list in promises of its own.
        for (const step of steps) yield step;
        const pause = breathe();
        if (pause) await pause;
      }
    } finally {
      session.busy = false;
      sampler?.dispose();
      if (plan.session === undefined) session.dispose();
      else this.#leave(session);
    }
  }

  /** Between generate() and the first step, another text may have used the cache. */
  #checkCache(cache: DecoderSession | undefined): void {
    if (!cache) return;
    const { lengths } = cache;
    refuseBusy(cache);
    if (lengths.some((length, row) => length !== this.#held[row]))
      fail(
        "cache-mismatch",
        `generate: the cache held ${show(this.#held)} tokens when it was called, and ${show(lengths)} when it began.`,
      );
  }

  #makeSampler(session: DecoderSession): Sampler {
    const { temperature, topK, topP, minP, repetitionPenalty, candidates, entropy, seeds } = this.#plan;
    const reported = Math.max(candidates, entropy ? 1 : 0);
    const sampler = session.sampler({ temperature, topK, topP, minP, repetitionPenalty, candidates: reported });
    this.#rows.forEach(({ ids }, row) => {
      sampler.begin(row, seeds[row]!);
      sampler.observe(row, Int32Array.from(ids));
    });
    return sampler;
  }

  /** All but each prompt's last token: that one is a step like those after it, whatever a step is asked for. */
  async #readPrompts(session: DecoderSession): Promise<void> {
    const steps = feed(
      session,
      this.#rows.map(({ ids }) => ids.slice(0, -1)),
      { logits: "none" },
    );
    for (const _ of steps) {
      await breathe();
      this.#plan.signal?.throwIfAborted();
    }
  }

  /** The next token of every row that goes on. */
  #step(session: DecoderSession, sampler: Sampler): GenerationStep[] {
    const active = this.#rows.map(({ finish }) => finish === undefined);
    const whole = this.#plan.weights === undefined && !active.includes(false);
    const looked = whole ? undefined : this.#append(session, active, "last").weights;
    const drawn = whole ? this.#advance(session, sampler) : session.sample(sampler);
    const lengths = session.lengths;
    const steps: GenerationStep[] = [];
    this.#rows.forEach((row, at) => {
      if (!active[at]) return;
      const step = this.#take(row, at, drawn[at]!, lengths[at]!, session.config.capacity);
      if (looked) step.weights = stepWeights(looked, this.#plan.weights!.heads, at, lengths[at]!);
      this.#report(step, sampler, row);
      steps.push(step);
    });
    return steps;
  }

  /** Appends and draws at once, which needs every row and shows nothing of it. */
  #advance(session: DecoderSession, sampler: Sampler): number[] {
    session.choose(this.#rows.map(({ pending }) => pending));
    return session.step(sampler);
  }

  #append(session: DecoderSession, active: readonly boolean[], logits: "none" | "last") {
    return session.forward(
      Int32Array.from(this.#rows, ({ pending }) => pending),
      {
        logits,
        lengths: active.includes(false) ? Int32Array.from(active, Number) : undefined,
        weights: logits === "none" ? undefined : this.#plan.weights,
      },
    );
  }

  /** `length`: tokens in the session, of which `capacity` fit. */
  #take(row: Row, at: number, id: number, length: number, capacity: number): GenerationStep {
    const isEnd = this.#tools.endIds.includes(id);
    row.pending = id;
    row.newTokens++;
    let text = row.stop.push(isEnd ? "" : row.stream.push(id));
    const room = Math.min(capacity, this.#tools.decoder.settings.contextLength);
    if (row.stop.stopped) row.finish = "stop";
    else if (isEnd) row.finish = "end";
    else if (row.newTokens === this.#plan.maxTokens) row.finish = "length";
    else if (length === room) row.finish = "context";
    if (row.finish !== undefined && row.finish !== "stop") {
      text += row.stop.push(row.stream.end());
      if (row.stop.stopped) row.finish = "stop";
      text += row.stop.end();
    }
    row.text += text;
    row.ids.push(id);
    return row.finish === undefined ? { row: at, id, text } : { row: at, id, text, finish: row.finish };
  }

  #report(step: GenerationStep, sampler: Sampler, { ids }: Row): void {
    const { candidates: wanted, entropy: asked } = this.#plan;
    if (wanted === 0 && !asked) return;
    const { candidates, entropy } = sampler.report(step.row);
    const { tokenizer } = this.#tools;
    const before = ids.slice(0, -1);
    const textOf = (id: number) => tokenizer.stream(before).push(id) || tokenizer.raw(id);
    if (wanted > 0)
      step.candidates = candidates.slice(0, wanted).map((candidate) => ({ ...candidate, text: textOf(candidate.id) }));
    if (asked) step.entropy = entropy;
  }

  /** A cache that goes on holds everything that was said; nothing new where nothing was. */
  #leave(session: DecoderSession): void {
    const { decoder } = this.#tools;
    if (session.disposed || decoder.disposed) return;
    if (this.stats.newTokens === 0) {
      session.rewind(this.#held);
      return;
    }
    const room = Math.min(session.config.capacity, decoder.settings.contextLength);
    const said = this.#rows.map(({ ids }, row) => Math.min(this.#held[row]! + ids.length, room));
    const misses = session.lengths.map((length, row) => length < said[row]!);
    if (misses.includes(true)) this.#append(session, misses, "none");
  }
}

/** Of one row, cut to the tokens that it has: [layers, heads, tokens]. */
function stepWeights(
  weights: readonly LayerWeights[],
  heads: readonly number[],
  row: number,
  length: number,
): StepWeights {
  const data = new Float32Array(weights.length * heads.length * length);
  weights.forEach(({ tensor }, layer) => {
    const columns = tensor.dims[3]!;
    heads.forEach((_, head) => {
      const from = (row * heads.length + head) * columns;
      data.set(tensor.data.subarray(from, from + length), (layer * heads.length + head) * length);
    });
  });
  const dims = [weights.length, heads.length, length];
  return { layers: weights.map(({ layer }) => layer), heads: [...heads], tensor: { data, dims } };
}
