/** One model that learns, off the main thread. */
import { createLookback, type Lookback, type Trainer } from "lookback";
import type { FromRun, RunConfig, Snapshot, StepNews, ToRun } from "./protocol";

/** The page's end of the line; the compiler knows this file as a page's. */
const line = self as unknown as {
  postMessage(message: FromRun, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<ToRun>) => void) | null;
};
const MESSAGE_MS = 150;
const SAMPLE_TOKENS = 140;
const abort = new AbortController();

/** Does a piece of work when it is this run's turn: two that calculate at once on two processors leave the page none. */
type Turn = <T>(work: () => Promise<T>) => Promise<T>;

/** Pages that are not secure have no locks, and some that may keep nothing are refused them: their runs calculate at once. */
async function turnOf(turns: string | null): Promise<Turn> {
  const isGranted = () => navigator.locks.request(`${turns} is granted`, () => true).catch(() => false);
  return turns !== null && navigator.locks && (await isGranted())
    ? <T>(work: () => Promise<T>) => navigator.locks.request(turns, work) as Promise<T>
    : (work) => work();
}

const tokensOfStep = ({ config: { batch, length, accumulate } }: Trainer): number => batch * length * accumulate;

async function prepare(lb: Lookback, config: RunConfig): Promise<Trainer> {
  const { layers, heads, embedDim, contextLength } = config;
  const trainer = await lb.trainer({
    model: { family: "gpt2", layers, heads, embedDim, contextLength },
    text: config.text,
    tokenizer: "characters",
    batch: config.batch,
    steps: config.steps,
    learningRate: config.learningRate,
    seed: config.seed,
    validation: config.validation,
    mask: config.mask,
    evaluateEvery: config.every,
  });
  const { trainTokens, validationTokens } = trainer.data;
  line.postMessage({
    type: "started",
    facts: {
      parameters: trainer.parameters,
      vocabSize: trainer.model.vocabSize,
      trainTokens,
      validationTokens,
      tokensPerStep: tokensOfStep(trainer),
      variant: lb.variant,
    },
  });
  return trainer;
}

async function start(config: RunConfig, turns: string | null): Promise<void> {
  const [lb, turn] = await Promise.all([createLookback(), turnOf(turns)]);
  const trainer = await turn(() => prepare(lb, config));
  await turn(() => tell(trainer, config));
  let steps: StepNews[] = [];
  let told = performance.now();
  let speed = 0;
  const tokensPerStep = tokensOfStep(trainer);
  const run = trainer.run({ signal: abort.signal })[Symbol.asyncIterator]();
  for (;;) {
    const asked = performance.now();
    const next = await turn(() => run.next());
    if (next.done) break;
    const { step, loss, validation } = next.value;
    steps.push({ step, loss, validation: validation?.loss ?? null });
    // One step is short, and the clock of a page is coarse.
    const now = (1000 * tokensPerStep) / (performance.now() - asked);
    speed = speed === 0 ? now : 0.9 * speed + 0.1 * now;
    const isLast = step === config.steps;
    if (isLast || performance.now() - told >= MESSAGE_MS) {
      line.postMessage({ type: "steps", steps, tokensPerSecond: speed });
      steps = [];
      told = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 0)); // the page may want it to stop
    }
    if (isLast || step % config.every === 0) await turn(() => tell(trainer, config));
  }
  line.postMessage({ type: "ended", whole: true });
}

/** What the model writes now, and how its heads look at the sentence. */
async function tell(trainer: Trainer, config: RunConfig): Promise<void> {
  const { layers, heads, sentence } = config;
  const { tokens, weights } = trainer.attend(sentence);
  const area = tokens.length ** 2;
  const maps = new Float32Array(layers * heads * area);
  weights.flat().forEach(({ data }, map) => {
    maps.set(data, map * area);
  });
  const snapshot: Snapshot = { step: trainer.step, sample: await write(trainer, config), tokens, maps };
  line.postMessage({ type: "snapshot", snapshot }, [maps.buffer]);
}

/**
 * The model sees a few tokens only, so a longer text is written piece by piece, each after the end of what is there. A model writes with the
 * mask, however it was trained: there is nothing ahead to see.
 */
async function write(trainer: Trainer, { prompt, contextLength, seed }: RunConfig): Promise<string> {
  let text = prompt;
  for (let written = 0, piece = 0; written < SAMPLE_TOKENS; piece++) {
    const end = [...text].slice(-Math.ceil(contextLength / 2)).join("");
    const run = trainer.generate(end, { temperature: 0.7, seed: seed + piece, signal: abort.signal });
    text += await run.text();
    written += run.stats.newTokens;
  }
  return text.slice(prompt.length);
}

line.onmessage = ({ data }) => {
  if (data.order === "stop") abort.abort();
  else
    void start(data.config, data.turns).catch((error: unknown) => {
      if (abort.signal.aborted) line.postMessage({ type: "ended", whole: false });
      else line.postMessage({ type: "failed", message: error instanceof Error ? error.message : String(error) });
    });
};
