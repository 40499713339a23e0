/** Writes, off the main thread: the engine, the model and the text under way all live here. */
import { createLookback, type Lookback } from "lookback";
import { type GenerationStep, loadDecoder, type Model, type StepWeights } from "lookback/model";
import { openSource } from "./models";
import type {
  FromWorker,
  Look,
  ModelFacts,
  Order,
  Questions,
  ReadText,
  Sampling,
  Source,
  ToWorker,
  Written,
} from "./protocol";

/** The page's end of the line; the compiler knows this file as a page's. */
const line = self as unknown as {
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};
const CANDIDATES = 8;
/** Between two messages of new tokens, and so between two looks at what the page says. */
const MESSAGE_MS = 30;
/** Queries whose weights of every layer and head are held at a time. */
const CHUNK = 32;

let engine: Promise<Lookback> | undefined;
let model: Model | undefined;
let writing: Writing | undefined;
let loading = new AbortController();
let reading: Promise<void> = Promise.resolve();
let look: Look = { layer: null, head: null };

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Which weights to ask for, to take the mean of. */
const chosen = ({ layer, head }: Look) => ({
  layers: layer === null ? ("all" as const) : [layer],
  heads: head === null ? ("all" as const) : [head],
});

function loaded(): Model {
  if (!model) throw new Error("no model is loaded");
  return model;
}

/** One model after another: who chooses a second one while the first is being read wants that no more. */
function load({ source }: Questions["load"]["ask"]): Promise<ModelFacts> {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  const next = reading.then(() => loadNow(source, signal));
  reading = next.then(
    () => {},
    () => {}, // the page is told
  );
  return next;
}

async function loadNow(source: Source, signal: AbortSignal): Promise<ModelFacts> {
  signal.throwIfAborted();
  writing?.stop();
  writing = undefined;
  engine ??= createLookback();
  const lb = await engine;
  model?.dispose();
  model = undefined;
  let told = 0;
  model = await loadDecoder(lb, await openSource(source), {
    signal,
    onProgress({ loaded, total }) {
      if (performance.now() - told < MESSAGE_MS) return;
      told = performance.now();
      line.postMessage({ type: "loading", loaded, total });
    },
  });
  const { parameters, config } = model.inspect();
  const { family, layers, heads, contextLength, vocabSize } = config;
  return { name: model.name, family, parameters, layers, heads, contextLength, vocabSize, variant: lb.variant };
}

function read({ text }: { text: string }): ReadText {
  const ids = loaded().encode(text);
  const own = loaded().encode(text, { special: false }).length;
  return { ids, texts: loaded().tokenize(text), special: ids.length - own };
}

/** Rows of all tokens but the first, over the layers and heads that are looked at; a long text by pieces. */
async function rowsOf({ ids, look: wanted }: Questions["look"]["ask"]): Promise<Float32Array> {
  const used = loaded();
  const out = new Float32Array((ids.length * (ids.length - 1)) / 2);
  const queries = ids.slice(0, -1);
  if (queries.length === 0) return out;
  const cache = used.cache({ capacity: queries.length });
  try {
    for (let from = 0; from < queries.length; from += CHUNK) {
      const part = queries.slice(from, from + CHUNK);
      const { weights } = used.forward(part, { weights: chosen(wanted), cache });
      if (!weights) throw new Error("the model returned no weights");
      const [layers = 0, , heads = 0, rows = 0, columns = 0] = weights.dims;
      for (let row = 0; row < rows; row++) {
        const query = from + row;
        const mean = out.subarray((query * (query + 1)) / 2, ((query + 1) * (query + 2)) / 2);
        for (let map = 0; map < layers * heads; map++)
          for (let key = 0; key <= query; key++)
            mean[key] = (mean[key] ?? 0) + (weights.data[(map * rows + row) * columns + key] ?? 0);
        for (let key = 0; key <= query; key++) mean[key] = (mean[key] ?? 0) / (layers * heads);
      }
      await pause(0);
    }
  } finally {
    cache.dispose();
  }
  return out;
}

/** The mean over the layers and heads that are looked at. */
function meanRow({ layers, heads, tensor }: StepWeights, seen: Look): Float32Array {
  const length = tensor.dims[2] ?? 0;
  const mean = new Float32Array(length);
  const maps = layers.flatMap((layer, l) =>
    heads
      .map((head, h) => ({ head, map: l * heads.length + h }))
      .filter(({ head }) => seen.head === null || seen.head === head)
      .filter(() => seen.layer === null || seen.layer === layer),
  );
  for (const { map } of maps)
    for (let key = 0; key < length; key++) mean[key] = (mean[key] ?? 0) + (tensor.data[map * length + key] ?? 0);
  for (let key = 0; key < length; key++) mean[key] = (mean[key] ?? 0) / maps.length;
  return mean;
}

/** One text under way. It stays open while it is paused, so that its draws go on where they were. */
class Writing {
  readonly #run: number;
  readonly #steps: AsyncIterator<GenerationStep, void, undefined>;
  readonly #abort = new AbortController();
  /** The number of the last order: an older one ends before its next token. */
  #order = 0;
  #busy: Promise<void> = Promise.resolve();
  #tokens = 0;
  #milliseconds = 0;
  #isRead = false;
  #done = false;

  constructor(run: number, ids: readonly number[], sampling: Sampling, maxTokens: number) {
    this.#run = run;
    this.#steps = loaded()
      .generate(ids, {
        ...sampling,
        maxTokens,
        candidates: Math.min(CANDIDATES, loaded().config.vocabSize),
        weights: true,
        signal: this.#abort.signal,
      })
      [Symbol.asyncIterator]();
  }

  go(pace: number): void {
    const order = ++this.#order;
    this.#then(async () => {
      while (order === this.#order && !this.#done) {
        const before = performance.now();
        await this.#write(pace > 0 ? 1 : Number.POSITIVE_INFINITY);
        await pause(Math.max(0, pace - (performance.now() - before)));
      }
    });
  }

  step(): void {
    const order = ++this.#order;
    this.#then(async () => {
      await this.#write(1);
      this.#rest(order);
    });
  }

  pause(): void {
    const order = ++this.#order;
    this.#then(async () => this.#rest(order));
  }

  #rest(order: number): void {
    if (order === this.#order && !this.#done) line.postMessage({ type: "paused", run: this.#run });
  }

  stop(): void {
    this.#done = true;
    this.#abort.abort();
    // Its memory is given back by the generation's own end.
    this.#busy = this.#busy.then(() => this.#steps.return?.()).then(() => undefined);
  }

  /** One thing after another: a step that is under way ends first. */
  #then(work: () => Promise<void>): void {
    this.#busy = this.#busy.then(async () => {
      try {
        await work();
      } catch (error) {
        if (this.#abort.signal.aborted) return;
        this.#done = true;
        line.postMessage({ type: "broken", run: this.#run, message: messageOf(error) });
      }
    });
  }

  /** Up to `most` tokens, and as many as fit between two messages. */
  async #write(most: number): Promise<void> {
    const start = performance.now();
    const seen = look;
    const tokens: Written[] = [];
    let finish: GenerationStep["finish"];
    // Reading may take long: what it ends with is told at once.
    while (tokens.length < (this.#isRead ? most : 1) && !this.#done && performance.now() - start < MESSAGE_MS) {
      const { value, done } = await this.#steps.next();
      if (done || !value) this.#done = true;
      else {
        if (!value.weights) throw new Error("the model returned no weights");
        tokens.push({
          id: value.id,
          text: value.text,
          candidates: value.candidates ?? [],
          row: meanRow(value.weights, seen),
        });
        finish = value.finish;
        if (finish) this.#done = true;
      }
    }
    // The first time, the text before was read, too.
    if (this.#isRead) {
      this.#tokens += tokens.length;
      this.#milliseconds += performance.now() - start;
    }
    this.#isRead = true;
    if (this.#abort.signal.aborted) return;
    const tokensPerSecond = this.#tokens > 0 ? (1000 * this.#tokens) / this.#milliseconds : 0;
    line.postMessage(
      { type: "written", run: this.#run, tokens, tokensPerSecond, look: seen },
      tokens.map(({ row }) => row.buffer),
    );
    if (finish) line.postMessage({ type: "ended", run: this.#run, finish });
  }
}

function obey(order: Order): void {
  switch (order.order) {
    case "begin":
      writing?.stop();
      try {
        writing = new Writing(order.run, order.ids, order.sampling, order.maxTokens);
      } catch (error) {
        writing = undefined;
        line.postMessage({ type: "broken", run: order.run, message: messageOf(error) });
      }
      return;
    case "go":
      writing?.go(order.pace);
      return;
    case "step":
      writing?.step();
      return;
    case "pause":
      writing?.pause();
      return;
    case "attention":
      look = order.look;
  }
}

async function answer(message: Exclude<ToWorker, Order>): Promise<void> {
  const { call } = message;
  try {
    const answer =
      message.question === "load"
        ? await load(message.ask)
        : message.question === "read"
          ? read(message.ask)
          : await rowsOf(message.ask);
    line.postMessage(
      { type: "answer", call, answer },
      answer instanceof Float32Array ? [answer.buffer as ArrayBuffer] : [],
    );
  } catch (error) {
    line.postMessage({ type: "failed", call, message: messageOf(error) });
  }
}

line.onmessage = ({ data }) => {
  if ("order" in data) obey(data);
  else void answer(data);
};
