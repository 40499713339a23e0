/** Train: a tiny model learns while one looks on, with the mask and without. */
import "../../styles/figures.css";
import "../../styles/workshop.css";
import "./train.css";
import type { Chapter, ChapterContext, MountedChapter } from "../../app/chapter";
import type { Lang } from "../../app/state";
import { h } from "../../view/dom";
import { range } from "../../view/fields";
import { TerminalView } from "../../view/terminal";
import { ChartView, lastValidation, recentLoss } from "./chart";
import { RunView, SettingsView, TextView } from "./controls-view";
import { en, type TrainMessages } from "./locales/en";
import { zh } from "./locales/zh";
import { ModelView } from "./model-view";
import { commandOf, configOf, readSettings, TEXTS, writeSettings } from "./settings";
import { Training } from "./training";

const MESSAGES: Readonly<Record<Lang, TrainMessages>> = { en, zh };

/** Until the chapter is there and nothing moves. */
const WARM_UP_MS = 300;

interface View {
  show(): void;
}

/** Which step the models are shown at. */
class SnapshotView implements View {
  readonly element: HTMLElement;
  readonly #training: Training;
  readonly #slider;
  readonly #input: HTMLInputElement;

  constructor(training: Training, t: TrainMessages["snapshot"]) {
    this.#training = training;
    this.#slider = range(
      { label: t.label },
      { min: 0, max: 1, step: 1 },
      (at) => {
        const step = this.#steps[at];
        return step === undefined ? t.newest : t.value(step);
      },
      (at) => training.look(at >= this.#steps.length - 1 ? null : (this.#steps[at] ?? null)),
    );
    this.element = h("div", { class: "snapshot" }, this.#slider.element);
    const input = this.element.querySelector("input");
    if (!input) throw new Error("a slider has an input");
    this.#input = input;
  }

  get #steps(): readonly number[] {
    return this.#training.state.masked?.snapshots.map(({ step }) => step) ?? [];
  }

  show(): void {
    const steps = this.#steps;
    const { at } = this.#training.state;
    this.element.hidden = steps.length < 2;
    this.#input.max = String(Math.max(1, steps.length - 1));
    this.#slider.show(at === null ? steps.length - 1 : steps.indexOf(at));
  }
}

/** What the two losses say, in words. */
class VerdictView implements View {
  readonly element = h("div", { class: "verdict", role: "status" });
  readonly #training: Training;
  readonly #t: TrainMessages["verdict"];

  constructor(training: Training, t: TrainMessages["verdict"]) {
    this.#training = training;
    this.#t = t;
  }

  show(): void {
    const { masked, leaking } = this.#training.state;
    this.element.hidden = !leaking;
    if (!leaking || !masked || this.#training.isBusy) {
      this.element.replaceChildren(h("p", {}, this.#t.wait));
      this.element.dataset.tone = "good";
      return;
    }
    const [ours, theirs] = [recentLoss(masked), recentLoss(leaking)];
    const [honest, fooled] = [lastValidation(masked), lastValidation(leaking)];
    if (ours === null || theirs === null || honest === null || fooled === null) return;
    const cheats = theirs < ours / 2 && fooled > honest;
    this.element.dataset.tone = cheats ? "bad" : "good";
    this.element.replaceChildren(
      h("p", {}, this.#t.leak(theirs.toFixed(2), ours.toFixed(2))),
      h("p", {}, cheats ? this.#t.fooled(fooled.toFixed(2), honest.toFixed(2)) : this.#t.notYet),
    );
  }
}

class TrainChapter implements MountedChapter {
  readonly #container: HTMLElement;
  readonly #context: ChapterContext;
  readonly #training: Training;
  #lang: Lang;
  #views: View[] = [];
  /** What is still to be shown, while models learn a view in each frame: with so much to do the page must stay at hand. */
  #due: View[] = [];
  #frame = 0;
  #warmUp = 0;
  #shared = "";

  constructor(container: HTMLElement, context: ChapterContext) {
    this.#container = container;
    this.#context = context;
    this.#lang = context.lang;
    this.#training = new Training(readSettings(context.parameters), TEXTS[context.lang], () => this.#later());
    this.#build();
  }

  unmount(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#warmUp);
    this.#training.end();
  }

  translate(lang: Lang): void {
    const { text, masked } = this.#training.state;
    const isOurs = text === TEXTS[this.#lang];
    this.#lang = lang;
    if (isOurs && !masked) this.#training.read(TEXTS[lang]);
    this.#build();
  }

  #build(): void {
    const t = MESSAGES[this.#lang];
    const training = this.#training;
    const text = new TextView(training, t.text, this.#lang);
    const settings = new SettingsView(training, t);
    const run = new RunView(training, t.run);
    const chart = new ChartView(t.chart);
    const verdict = new VerdictView(training, t.verdict);
    const terminal = new TerminalView(t.terminal, () => commandOf(configOf(training.state.settings, "", true)));
    const snapshot = new SnapshotView(training, t.snapshot);
    const masked = new ModelView("masked", t.model);
    const leaking = new ModelView("leaking", t.model);
    const results = h(
      "div",
      { class: "results" },
      chart.element,
      verdict.element,
      snapshot.element,
      h("div", { class: "models" }, masked.element, leaking.element),
      h("p", { class: "hint writing" }, t.model.writing),
    );
    const view = (show: () => void): View => ({ show });
    const state = () => training.state;
    this.#views = [
      view(() => {
        for (const each of [text, settings, run, verdict, snapshot, terminal]) each.show();
        results.hidden = state().masked === null;
      }),
      view(() => chart.show(state())),
      view(() => masked.show(state().masked, state().at)),
      view(() => leaking.show(state().leaking, state().at)),
    ];
    this.#container.replaceChildren(
      h(
        "article",
        { class: "chapter workshop train", id: "chapter-train", "aria-labelledby": "train-title" },
        h(
          "header",
          { class: "lab-head" },
          h("p", { class: "eyebrow" }, t.eyebrow),
          h("h1", { id: "train-title", tabindex: -1 }, t.title),
          h("p", { class: "lead" }, t.lead),
        ),
        h("div", { class: "desk" }, text.element, settings.element),
        run.element,
        results,
        terminal.element,
      ),
    );
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#due = [];
    for (const each of this.#views) each.show();
    this.#share();
    clearTimeout(this.#warmUp);
    this.#warmUp = window.setTimeout(() => {
      if (!training.state.masked) masked.warmUp();
    }, WARM_UP_MS);
  }

  #later(): void {
    this.#due.push(...this.#views.filter((view) => !this.#due.includes(view)));
    this.#frame ||= requestAnimationFrame(() => this.#showNext());
  }

  #showNext(): void {
    do this.#due.shift()?.show();
    while (!this.#training.isBusy && this.#due.length > 0);
    this.#frame = this.#due.length > 0 ? requestAnimationFrame(() => this.#showNext()) : 0;
    this.#share();
  }

  #share(): void {
    const parameters = writeSettings(this.#training.state.settings);
    const text = String(parameters);
    if (text === this.#shared) return;
    this.#shared = text;
    this.#context.share(parameters);
  }
}

export const chapter: Chapter = {
  mount: (container, context) => new TrainChapter(container, context),
};
