/** Long context: thousands of words in a worker, of whose weights only a summary is kept. */
import type { WorkerLookback } from "lookback/worker";
import type { Chapter, ChapterContext } from "../../app/chapter";
import { engineLine } from "../../app/engine-line";
import { MESSAGES } from "../../app/frame";
import { segmented } from "../../view/controls";
import { h } from "../../view/dom";
import { en, type LongContextMessages } from "./en";
import { inputsOf, LENGTHS, tokensOf } from "./inputs";
import "./long-context.css";
import { Report } from "./report";
import { type LongResult, runLong } from "./run";
import { POSITIONS, type Positions, readSettings, type Settings, WINDOWS, writeSettings } from "./settings";
import { type TextSource, textSource } from "./text-source";
import { zh } from "./zh";

/** Lets what was just changed be painted. */
const breath = () => new Promise<void>((resolve) => setTimeout(resolve, 30));

class LongContext {
  readonly element: HTMLElement;
  readonly #t: LongContextMessages;
  readonly #context: ChapterContext;
  readonly #numbers: Intl.NumberFormat;
  readonly #status = h("p", { class: "run-status", role: "status" });
  readonly #bar = h("progress", { max: 1, value: 0 });
  readonly #start: HTMLButtonElement;
  readonly #cancel: HTMLButtonElement;
  readonly #refusal = h("div", { class: "refusal", role: "alert", hidden: true });
  readonly #engine = h("div", { class: "run-engine" });
  readonly #positionHint = h("p", { class: "hint" });
  readonly #source: TextSource;
  readonly #report: Report;
  readonly #controls: { show(settings: Settings): void };
  #settings: Settings;
  #worker: Promise<WorkerLookback> | null = null;
  #run = new AbortController();
  #text: string | null = null;

  constructor(context: ChapterContext) {
    this.#context = context;
    this.#t = { en, zh }[context.lang];
    const t = this.#t;
    const { htmlLang } = MESSAGES[context.lang];
    this.#numbers = new Intl.NumberFormat(htmlLang);
    this.#settings = readSettings(context.parameters);
    this.#start = h("button", { type: "button", class: "primary run", onclick: () => void this.calculate() }, t.run);
    this.#cancel = h("button", { type: "button", class: "secondary cancel", hidden: true }, t.cancel);
    this.#cancel.addEventListener("click", () => this.#run.abort("cancelled"));
    this.#bar.setAttribute("aria-label", t.progress);
    this.#source = textSource(t, this.#numbers, () => {
      this.#text = null;
      void this.calculate();
    });
    this.#report = new Report(t, htmlLang, LENGTHS.at(-1) ?? 1, (row) => this.#choose({ row }, false));
    const controls = this.#buildControls();
    this.#controls = controls;
    this.element = h(
      "div",
      { class: "column lab long-context" },
      h(
        "header",
        { class: "lab-head" },
        h("p", { class: "eyebrow" }, t.eyebrow),
        h("h1", { tabindex: -1 }, t.title),
        h("p", { class: "lead" }, t.lead),
      ),
      h(
        "section",
        { class: "panel long-settings", "aria-label": t.settings },
        this.#source.element,
        ...controls.elements,
        h("div", { class: "run-line" }, this.#start, this.#cancel, this.#bar, this.#status),
        this.#refusal,
        this.#engine,
      ),
      this.#report.element,
    );
  }

  #buildControls() {
    const t = this.#t;
    const length = segmented(
      t.length,
      LENGTHS.map((each) => ({ value: String(each), label: this.#numbers.format(each) })),
      (value) => this.#choose({ length: Number(value) }),
      "length-choice",
    );
    const positions = segmented<Positions>(
      t.positions,
      POSITIONS.map((value) => ({ value, label: t.positionNames[value] })),
      (value) => this.#choose({ positions: value }),
      "position-choice",
    );
    const reach = segmented(
      t.window,
      WINDOWS.map((each) => ({ value: String(each), label: each === 0 ? t.windowAll : this.#numbers.format(each) })),
      (value) => this.#choose({ window: Number(value) }),
      "window-choice",
    );
    return {
      elements: [
        h("div", { class: "long-switches" }, length.element, positions.element, reach.element),
        this.#positionHint,
      ],
      show: (settings: Settings) => {
        length.show(String(settings.length));
        positions.show(settings.positions);
        reach.show(String(settings.window));
        this.#positionHint.textContent = t.positionHints[settings.positions];
      },
    };
  }

  /** What a link or the way back asks for. */
  read(parameters: URLSearchParams): void {
    this.#settings = readSettings(parameters);
    void this.calculate();
  }

  /** Ends the worker, and with it what it calculates. */
  leave(): void {
    this.#run.abort();
    this.#worker?.then(
      (worker) => worker.dispose(),
      () => {},
    );
  }

  #choose(patch: Partial<Settings>, again = true): void {
    this.#settings = { ...this.#settings, ...patch };
    this.#context.share(writeSettings(this.#settings));
    if (again) void this.calculate();
    else this.#report.showRow(this.#settings.row);
  }

  async #startWorker(): Promise<WorkerLookback> {
    if (!this.#worker) {
      const { createLookbackWorker } = await import("lookback/worker");
      const starting = createLookbackWorker({ threads: "auto", signal: this.#context.signal });
      this.#worker = starting;
      starting.catch(() => {
        if (this.#worker === starting) this.#worker = null;
      });
    }
    return this.#worker;
  }

  #busy(words: string | null, fraction = 0): void {
    this.#cancel.hidden = words === null;
    this.#bar.hidden = words === null;
    this.#start.hidden = words !== null;
    this.#bar.value = fraction;
    this.#status.textContent = words ?? "";
  }

  /** Calculates what the settings ask for; one that still runs is ended. */
  async calculate(): Promise<void> {
    const t = this.#t;
    this.#run.abort();
    const run = new AbortController();
    this.#run = run;
    const { signal } = run;
    this.#controls.show(this.#settings);
    this.#refusal.hidden = true;
    delete this.element.dataset.done;
    try {
      this.#busy(t.preparing);
      this.#text ??= await this.#source.read();
      await breath();
      signal.throwIfAborted();
      if (this.#text === null) return this.#busy(null);
      const inputs = inputsOf(tokensOf(this.#text, this.#settings.length));
      this.#busy(t.starting);
      const worker = await this.#startWorker();
      signal.throwIfAborted();
      this.#engine.replaceChildren(engineLine(MESSAGES[this.#context.lang], worker));
      const onProgress = (fraction: number) => {
        if (!signal.aborted) this.#busy(t.running(`${Math.round(100 * fraction)}%`), fraction);
      };
      onProgress(0);
      const result = await runLong(worker, inputs, this.#settings, { signal, onProgress });
      if (signal.aborted) return;
      this.#show(result);
    } catch (error) {
      if (this.#run === run) this.#stopped(error, signal);
    }
  }

  #show(result: LongResult): void {
    this.#busy(null);
    this.#report.show(result, this.#settings.row);
    this.element.dataset.done = new URLSearchParams(writeSettings(this.#settings)).toString() || "start";
  }

  #stopped(error: unknown, signal: AbortSignal): void {
    this.#busy(null);
    if (signal.aborted) this.#status.textContent = this.#t.cancelled;
    else {
      const message = error instanceof Error ? error.message : String(error);
      this.#refusal.hidden = false;
      this.#refusal.replaceChildren(h("code", { class: "engine-message", lang: "en" }, message));
    }
  }
}

export const chapter: Chapter = {
  mount(container, context) {
    const view = new LongContext(context);
    container.append(view.element);
    void view.calculate();
    return { unmount: () => view.leave(), navigate: (parameters) => view.read(parameters) };
  },
};
