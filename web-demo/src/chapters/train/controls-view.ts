/** The text, the sizes, and the buttons that train. */
import type { Lang } from "../../app/state";
import { type Control, checkbox, segmented } from "../../view/controls";
import { h } from "../../view/dom";
import { range, textArea, wholeNumber } from "../../view/fields";
import { formatCount } from "../../view/format";
import type { TrainMessages } from "./locales/en";
import { HEADS, LIMITS, SIZES, type Size, TEXTS } from "./settings";
import { isBusy, type Run, type Training } from "./training";

const LEAST = 300;

export class TextView {
  readonly element: HTMLElement;
  readonly #field;
  readonly #training: Training;
  readonly #t: TrainMessages["text"];
  readonly #source: HTMLElement;
  readonly #reset: HTMLElement;
  #told: string | null = null;

  constructor(training: Training, t: TrainMessages["text"], lang: Lang) {
    this.#training = training;
    this.#t = t;
    this.#field = textArea({ label: t.label }, 9, (text) => training.read(text));
    this.#source = h("span", {}, t.source);
    this.#reset = h("button", { type: "button", class: "quiet", onclick: () => training.read(TEXTS[lang]) }, t.reset);
    const file = h("input", {
      type: "file",
      accept: "text/*,.txt,.md",
      class: "visually-hidden",
      tabindex: -1,
      "aria-label": t.file,
    });
    file.addEventListener("change", () => {
      const [first] = file.files ?? [];
      file.value = "";
      if (first) void first.text().then((text) => training.read(text));
    });
    this.element = h(
      "div",
      { class: "corpus" },
      this.#field.element,
      h(
        "p",
        { class: "hint corpus-foot" },
        this.#source,
        h("button", { type: "button", class: "quiet", onclick: () => file.click() }, t.file),
        file,
        this.#reset,
        h("span", {}, t.local),
      ),
    );
    this.#listen();
  }

  show(): void {
    const { text } = this.#training.state;
    if (text === this.#told) return;
    this.#told = text;
    this.#field.show(text);
    const builtIn = Object.values(TEXTS).includes(text);
    this.#source.hidden = !builtIn;
    this.#reset.hidden = builtIn;
    const letters = [...text];
    const facts = this.#t.hint(formatCount(letters.length), formatCount(new Set(letters).size));
    this.#field.warn(letters.length < LEAST ? this.#t.short : null);
    if (letters.length >= LEAST) this.#field.tell(facts);
  }

  #listen(): void {
    const { element } = this;
    element.addEventListener("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
    element.addEventListener("drop", (event) => {
      const [file] = event.dataTransfer?.files ?? [];
      if (!file) return;
      event.preventDefault();
      void file.text().then((text) => this.#training.read(text));
    });
  }
}

/** Long enough to be cut into windows and a part that is kept back. */
export const isLongEnough = (text: string): boolean => [...text.slice(0, 2 * LEAST)].length >= LEAST;

export class SettingsView {
  readonly element: HTMLElement;
  readonly #training: Training;
  readonly #t: TrainMessages;
  readonly #size: Control<Size>;
  readonly #facts = h("p", { class: "hint" });
  readonly #heads: Control<number>;
  readonly #steps: Control<number>;
  readonly #seed: Control<number>;
  readonly #leak: Control<boolean>;

  constructor(training: Training, t: TrainMessages) {
    this.#training = training;
    this.#t = t;
    const settings = () => training.state.settings;
    this.#size = segmented<Size>(
      t.size.legend,
      (Object.keys(SIZES) as Size[]).map((value) => ({ value, label: t.size[value] })),
      (size) => training.change({ size }),
    );
    const last = HEADS.length - 1;
    this.#heads = range(
      t.heads,
      { min: 0, max: last, step: 1 },
      (at) => t.heads.value(HEADS[at] ?? 1, SIZES[settings().size].embedDim / (HEADS[at] ?? 1)),
      (at) => training.change({ heads: HEADS[at] ?? 1 }),
    );
    this.#steps = wholeNumber(t.steps, { min: 1, max: LIMITS.steps }, (steps) => training.change({ steps }));
    this.#seed = wholeNumber(t.seed, { min: 0, max: LIMITS.seed }, (seed) => training.change({ seed }));
    this.#leak = checkbox(t.leak, (leak) => training.change({ leak }));
    this.element = h(
      "div",
      { class: "training-settings" },
      h("div", {}, this.#size.element, this.#facts),
      this.#heads.element,
      h("div", { class: "number-pair" }, this.#steps.element, this.#seed.element),
      this.#leak.element,
    );
  }

  show(): void {
    const { size, heads, steps, seed, leak } = this.#training.state.settings;
    const { layers, embedDim, contextLength } = SIZES[size];
    this.#size.show(size);
    this.#facts.textContent = this.#t.size.facts(layers, embedDim, contextLength);
    this.#heads.show(HEADS.indexOf(heads as (typeof HEADS)[number]));
    this.#steps.show(steps);
    this.#seed.show(seed);
    this.#leak.show(leak);
  }
}

export class RunView {
  readonly element: HTMLElement;
  readonly #training: Training;
  readonly #t: TrainMessages["run"];
  readonly #main = h("button", { type: "button", class: "primary" });
  readonly #status = h("p", { class: "run-status" });
  readonly #progress = h("progress", { max: 1 });
  readonly #error = h("div", { class: "refusal", role: "alert" });

  constructor(training: Training, t: TrainMessages["run"]) {
    this.#training = training;
    this.#t = t;
    this.#progress.setAttribute("aria-label", t.progress);
    this.#main.addEventListener("click", () => {
      if (training.isBusy) training.stop();
      else training.start();
    });
    this.element = h(
      "div",
      { class: "run" },
      h("div", { class: "run-line", role: "group", "aria-label": t.label }, this.#main, this.#status),
      this.#progress,
      this.#error,
    );
  }

  show(): void {
    const { masked, leaking, text } = this.#training.state;
    const t = this.#t;
    const { isBusy } = this.#training;
    const runs = [masked, leaking].filter((run) => run !== null);
    this.#main.textContent = isBusy ? t.stop : masked ? t.again : t.start;
    this.#main.disabled = runs.some(({ phase }) => phase === "stopping") || (!isBusy && !isLongEnough(text));
    const made = runs.reduce((sum, { steps }) => sum + steps.length, 0);
    const wanted = runs.reduce((sum, { config }) => sum + config.steps, 0);
    this.#progress.hidden = !isBusy;
    this.#progress.value = wanted > 0 ? made / wanted : 0;
    this.#status.textContent = this.#say(masked, leaking);
    this.#status.dataset.phase = isBusy ? "busy" : (masked?.phase ?? "none");
    const failed = runs.find(({ error }) => error !== null);
    if (masked?.facts) this.element.dataset.variant = masked.facts.variant;
    this.#error.hidden = failed === undefined;
    if (failed)
      this.#error.replaceChildren(
        h("p", {}, t.failed),
        h("code", { class: "engine-message", lang: "en" }, failed.error ?? ""),
      );
  }

  #say(masked: Run | null, leaking: Run | null): string {
    const t = this.#t;
    if (!masked) return "";
    const run = isBusy(masked) || !isBusy(leaking) ? masked : (leaking ?? masked);
    const step = run.steps.length;
    const words: Record<Run["phase"], string> = {
      starting: t.starting,
      running: t.running(step, run.config.steps),
      stopping: t.stopping,
      ended: t.ended(run.config.steps),
      stopped: t.stopped(step),
      failed: "",
    };
    const parts = [words[run.phase]];
    if (run.facts) parts.push(t.facts(formatCount(run.facts.parameters), formatCount(run.facts.tokensPerStep)));
    const speed = [masked, leaking].reduce((sum, one) => sum + (isBusy(one) ? (one?.tokensPerSecond ?? 0) : 0), 0);
    if (speed > 0) parts.push(t.speed(formatCount(speed, 3)));
    return parts.filter((part) => part !== "").join(" · ");
  }
}
