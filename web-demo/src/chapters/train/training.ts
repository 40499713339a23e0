/** The chapter's state: the text, the settings, one run with the mask and perhaps one without, and runs of before to compare with. */
import type { FromRun, RunConfig, RunFacts, Snapshot, StepNews, ToRun } from "./protocol";
import { configOf, type Settings } from "./settings";

export type RunPhase = "starting" | "running" | "stopping" | "ended" | "stopped" | "failed";

/** What is known of a run. */
export interface Run {
  readonly config: RunConfig;
  readonly phase: RunPhase;
  readonly facts: RunFacts | null;
  readonly steps: readonly StepNews[];
  readonly snapshots: readonly Snapshot[];
  readonly tokensPerSecond: number;
  readonly error: string | null;
}

export interface TrainingState {
  readonly settings: Settings;
  readonly text: string;
  readonly masked: Run | null;
  readonly leaking: Run | null;
  /** Runs with the mask that were there before, the newest first. */
  readonly before: readonly Run[];
  /** Which snapshot is shown; null = the newest. */
  readonly at: number | null;
}

type Which = "masked" | "leaking";
const KEPT = 3;

export const isBusy = (run: Run | null): boolean => run !== null && /^(starting|running|stopping)$/.test(run.phase);

export class Training {
  readonly #changed: () => void;
  readonly #workers = new Map<Which, Worker>();
  #state: TrainingState;

  constructor(settings: Settings, text: string, changed: () => void) {
    this.#changed = changed;
    this.#state = { settings, text, masked: null, leaking: null, before: [], at: null };
  }

  get state(): TrainingState {
    return this.#state;
  }

  get isBusy(): boolean {
    return isBusy(this.#state.masked) || isBusy(this.#state.leaking);
  }

  change(settings: Partial<Settings>): void {
    this.#set({ settings: { ...this.#state.settings, ...settings } });
  }

  read(text: string): void {
    this.#set({ text });
  }

  look(at: number | null): void {
    this.#set({ at });
  }

  start(): void {
    this.end();
    const { settings, text, masked, before } = this.#state;
    const turns =
      settings.leak && navigator.hardwareConcurrency < 3 ? `train ${crypto.getRandomValues(new Uint32Array(2))}` : null;
    const old = masked && masked.steps.length > 0 && masked.config.text === text ? [masked] : [];
    const rest = before.filter(({ config }) => config.text === text);
    this.#set({
      masked: this.#begin("masked", configOf(settings, text, true), turns),
      leaking: settings.leak ? this.#begin("leaking", configOf(settings, text, false), turns) : null,
      before: [...old, ...rest].slice(0, KEPT),
      at: null,
    });
  }

  /** Each run ends after the step that it is in, and keeps what it has. */
  stop(): void {
    for (const which of ["masked", "leaking"] as const) {
      const run = this.#state[which];
      if (run && isBusy(run)) {
        this.#order(which, { order: "stop" });
        this.#update(which, { phase: "stopping" });
      }
    }
  }

  /** No more of it. */
  end(): void {
    for (const worker of this.#workers.values()) worker.terminate();
    this.#workers.clear();
  }

  #begin(which: Which, config: RunConfig, turns: string | null): Run {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: `train-${which}` });
    this.#workers.set(which, worker);
    const isOurs = () => this.#workers.get(which) === worker;
    worker.onmessage = ({ data }: MessageEvent<FromRun>) => {
      if (isOurs()) this.#hear(which, data);
    };
    worker.onerror = (event) => {
      if (isOurs()) this.#close(which, { phase: "failed", error: event.message || "the worker could not be started" });
    };
    this.#order(which, { order: "start", config, turns });
    return { config, phase: "starting", facts: null, steps: [], snapshots: [], tokensPerSecond: 0, error: null };
  }

  #order(which: Which, order: ToRun): void {
    this.#workers.get(which)?.postMessage(order);
  }

  #hear(which: Which, news: FromRun): void {
    const run = this.#state[which];
    if (!run) return;
    if (news.type === "started")
      this.#update(which, { phase: run.phase === "stopping" ? "stopping" : "running", facts: news.facts });
    else if (news.type === "steps")
      this.#update(which, { steps: [...run.steps, ...news.steps], tokensPerSecond: news.tokensPerSecond });
    else if (news.type === "snapshot") this.#update(which, { snapshots: [...run.snapshots, news.snapshot] });
    else if (news.type === "ended") this.#close(which, { phase: news.whole ? "ended" : "stopped" });
    else this.#close(which, { phase: "failed", error: news.message });
  }

  /** The run's memory is given back with its worker. */
  #close(which: Which, patch: Partial<Run>): void {
    this.#workers.get(which)?.terminate();
    this.#workers.delete(which);
    this.#update(which, patch);
  }

  #update(which: Which, patch: Partial<Run>): void {
    const run = this.#state[which];
    if (run) this.#set({ [which]: { ...run, ...patch } });
  }

  #set(patch: Partial<TrainingState>): void {
    this.#state = { ...this.#state, ...patch };
    this.#changed();
  }
}
