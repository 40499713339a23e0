/** Long context: thousands of words in a worker, of whose weights only a summary is kept. */
import type { WorkerLookback } from "lookback/worker";
import type { Chapter, ChapterContext } from "../../app/chapter";
import { engineLine } from "../../app/engine-line";
import { MESSAGES } from "../../app/frame";
import type { Lang } from "../../app/state";
import { segmented } from "../../view/controls";
import { h } from "../../view/dom";
import { en, type LongContextMessages } from "./en";
import { LENGTHS } from "./inputs";
import "./long-context.css";
import { readInputs } from "./read-inputs";
import { Report } from "./report";
import { type LongResult, runLong } from "./run";
import { POSITIONS, type Positions, readSettings, type Settings, WINDOWS, writeSettings } from "./settings";
import { type GivenText, type TextSource, textSource } from "./text-source";
import { zh } from "./zh";

const LANGUAGES: Readonly<Record<Lang, LongContextMessages>> = { en, zh };

/** What is said while it works, in whichever language. */
type Said = (t: LongContextMessages) => string;

/** What is made anew for each language. */
interface Controls {
  readonly source: TextSource;
  readonly report: Report;
  show(settings: Settings): void;
}

class LongContext {
  readonly element = h("div", { class: "column lab long-context" });
  readonly #context: ChapterContext;
  readonly #status = h("p", { class: "run-status", role: "status" });
  readonly #bar = h("progress", { max: 1, value: 0 });
  readonly #start = h("button", { type: "button", class: "primary run", onclick: () => void this.calculate() });
  readonly #cancel = h("button", { type: "button", class: "secondary cancel", hidden: true });
  readonly #refusal = h("div", { class: "refusal", role: "alert", hidden: true });
  readonly #engine = h("div", { class: "run-engine" });
  readonly #positionHint = h("p", { class: "hint" });
  #lang: Lang;
  #controls: Controls;
  #settings: Settings;
  #said: Said = () => "";
  #result: LongResult | null = null;
  #worker: Promise<WorkerLookback> | null = null;
  #run = new AbortController();
  #text: string | null = null;

  constructor(context: ChapterContext) {
    this.#context = context;
    this.#lang = context.lang;
    this.#settings = readSettings(context.parameters);
    this.#cancel.addEventListener("click", () => this.#run.abort("cancelled"));
    this.#controls = this.#build();
  }

  get #t(): LongContextMessages {
    return LANGUAGES[this.#lang];
  }

  /** What was calculated, or still is, stays. */
  translate(lang: Lang): void {
    this.#lang = lang;
    this.#controls = this.#build(this.#controls.source.given);
    this.#controls.show(this.#settings);
    this.#status.textContent = this.#said(this.#t);
    if (this.#result) this.#controls.report.show(this.#result, this.#settings.row);
    // Whoever asked for the worker shows why there is none.
    this.#tellEngine().catch(() => {});
  }

  /** The whole chapter in its language; `given` is the text that the reader gave in another. */
  #build(given?: GivenText): Controls {
    const t = this.#t;
    const { htmlLang } = MESSAGES[this.#lang];
    const numbers = new Intl.NumberFormat(htmlLang);
    this.#start.textContent = t.run;
    this.#cancel.textContent = t.cancel;
    this.#bar.setAttribute("aria-label", t.progress);
    const changed = () => {
      this.#text = null;
      void this.calculate();
    };
    const source = textSource(t, numbers, changed, given);
    const report = new Report(t, htmlLang, LENGTHS.at(-1) ?? 1, (row) => this.#choose({ row }, false));
    const { elements, show } = this.#choices(numbers);
    this.element.replaceChildren(
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
        source.element,
        ...elements,
        h("div", { class: "run-line" }, this.#start, this.#cancel, this.#bar, this.#status),
        this.#refusal,
        this.#engine,
      ),
      report.element,
    );
    return { source, report, show };
  }

  #choices(numbers: Intl.NumberFormat) {
    const t = this.#t;
    const length = segmented(
      t.length,
      LENGTHS.map((each) => ({ value: String(each), label: numbers.format(each) })),
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
      WINDOWS.map((each) => ({ value: String(each), label: each === 0 ? t.windowAll : numbers.format(each) })),
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
    else this.#controls.report.showRow(this.#settings.row);
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

  async #tellEngine(): Promise<void> {
    const worker = await this.#worker;
    if (worker) this.#engine.replaceChildren(engineLine(MESSAGES[this.#lang], worker));
  }

  #say(said: Said): void {
    this.#said = said;
    this.#status.textContent = said(this.#t);
  }

  #busy(said: Said, fraction = 0): void {
    this.#setBusy(true, fraction);
    this.#say(said);
  }

  #idle(said: Said = () => ""): void {
    this.#setBusy(false);
    this.#say(said);
  }

  #setBusy(busy: boolean, fraction = 0): void {
    this.#cancel.hidden = !busy;
    this.#bar.hidden = !busy;
    this.#start.hidden = busy;
    this.#bar.value = fraction;
  }

  /** Calculates what the settings ask for; one that still runs is ended. */
  async calculate(): Promise<void> {
    this.#run.abort();
    const run = new AbortController();
    this.#run = run;
    const { signal } = run;
    this.#controls.show(this.#settings);
    this.#refusal.hidden = true;
    delete this.element.dataset.done;
    try {
      this.#busy((t) => t.preparing);
      this.#text ??= await this.#controls.source.read();
      signal.throwIfAborted();
      if (this.#text === null) return this.#idle();
      const inputs = await readInputs({ text: this.#text, length: this.#settings.length }, signal);
      this.#busy((t) => t.starting);
      const worker = await this.#startWorker();
      signal.throwIfAborted();
      await this.#tellEngine();
      const onProgress = (fraction: number) => {
        if (!signal.aborted) this.#busy((t) => t.running(`${Math.round(100 * fraction)}%`), fraction);
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
    this.#idle();
    this.#result = result;
    this.#controls.report.show(result, this.#settings.row);
    this.element.dataset.done = new URLSearchParams(writeSettings(this.#settings)).toString() || "start";
  }

  #stopped(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) this.#idle((t) => t.cancelled);
    else {
      this.#idle();
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
    return {
      unmount: () => view.leave(),
      navigate: (parameters) => view.read(parameters),
      translate: (lang) => view.translate(lang),
    };
  },
};
