/** The beginning, the ways to choose, and the buttons that write. */
import { type Control, segmented } from "../../view/controls";
import { h } from "../../view/dom";
import { choice, range, textArea, wholeNumber } from "../../view/fields";
import { formatCount } from "../../view/format";
import type { WriteMessages } from "./locales/en";
import { LIMITS, PACES, type Pace } from "./settings";
import type { Writer } from "./writer";

const shown = (value: number) => String(Math.round(value * 100) / 100);

export class PromptView {
  readonly element: HTMLElement;
  readonly #field;
  readonly #writer: Writer;
  readonly #t: WriteMessages["prompt"];

  constructor(writer: Writer, t: WriteMessages["prompt"]) {
    this.#writer = writer;
    this.#t = t;
    this.#field = textArea(t, 2, (prompt) => writer.change({ prompt }));
    this.#field.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      void writer.write();
    });
    this.element = this.#field.element;
  }

  show(): void {
    const { prompt } = this.#writer.state.settings;
    this.#field.show(prompt);
    this.#field.warn(prompt === "" ? this.#t.empty : null);
  }

  /** The whole text becomes the beginning, to be changed. */
  edit(): void {
    this.#writer.change({ prompt: this.#writer.tree.text() });
    const { input } = this.#field;
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
    input.scrollTop = input.scrollHeight;
  }
}

export class SamplingView {
  readonly element: HTMLElement;
  readonly #writer: Writer;
  readonly #fields: readonly { readonly field: Control<number>; readonly value: () => number }[];

  constructor(writer: Writer, t: WriteMessages["sampling"]) {
    this.#writer = writer;
    const sampling = () => writer.state.settings.sampling;
    const temperature = range(
      { label: t.temperature, hint: t.temperatureHint },
      { min: 0, max: LIMITS.temperature, step: 0.05 },
      (value) => (value === 0 ? t.greedy : shown(value)),
      (value) => writer.sample({ temperature: value }),
    );
    const topP = range(
      { label: t.topP, hint: t.topPHint },
      { min: 0.05, max: 1, step: 0.05 },
      (value) => (value === 1 ? t.all : shown(value)),
      (value) => writer.sample({ topP: Math.round(value * 100) / 100 }),
    );
    const topK = wholeNumber({ label: t.topK, hint: t.topKHint }, { min: 0, max: LIMITS.topK }, (value) =>
      writer.sample({ topK: value }),
    );
    const seed = wholeNumber({ label: t.seed, hint: t.seedHint }, { min: 0, max: LIMITS.seed }, (value) =>
      writer.sample({ seed: value }),
    );
    const most = wholeNumber(
      { label: t.maxTokens, hint: t.maxTokensHint },
      { min: 1, max: LIMITS.maxTokens },
      (value) => writer.change({ maxTokens: value }),
    );
    const another = h(
      "button",
      {
        type: "button",
        class: "theme",
        title: t.another,
        "aria-label": t.another,
        onclick: () => writer.sample({ seed: Math.floor(Math.random() * 10_000) }),
      },
      "⚄",
    );
    this.#fields = [
      { field: temperature, value: () => sampling().temperature },
      { field: topP, value: () => sampling().topP },
      { field: topK, value: () => sampling().topK },
      { field: seed, value: () => sampling().seed },
      { field: most, value: () => writer.state.settings.maxTokens },
    ];
    this.element = h(
      "fieldset",
      { class: "sampling" },
      h("legend", {}, t.legend),
      temperature.element,
      topP.element,
      topK.element,
      h("div", { class: "seed-line" }, seed.element, another),
      most.element,
    );
  }

  show(): void {
    for (const { field, value } of this.#fields) field.show(value());
    this.element.toggleAttribute("disabled", this.#writer.state.phase === "loading");
  }
}

export class LookView {
  readonly element: HTMLElement;
  readonly #writer: Writer;
  readonly #t: WriteMessages["look"];
  readonly #layer;
  readonly #head;
  #offered = "";

  constructor(writer: Writer, t: WriteMessages["look"]) {
    this.#writer = writer;
    this.#t = t;
    const read = (value: string) => (value === "" ? null : Number(value));
    this.#layer = choice<string>({ label: t.layer }, (layer) =>
      writer.look({ ...writer.state.settings.look, layer: read(layer) }),
    );
    this.#head = choice<string>({ label: t.head }, (head) =>
      writer.look({ ...writer.state.settings.look, head: read(head) }),
    );
    this.element = h(
      "fieldset",
      { class: "look-choice" },
      h("legend", {}, t.legend),
      this.#layer.element,
      this.#head.element,
    );
  }

  show(): void {
    const { model, settings } = this.#writer.state;
    const counts = [model?.layers ?? 0, model?.heads ?? 0] as const;
    if (this.#offered !== counts.join()) {
      this.#offered = counts.join();
      [this.#layer, this.#head].forEach((field, which) => {
        const numbers = Array.from({ length: counts[which] ?? 0 }, (_, n) => ({
          value: String(n),
          label: this.#t.number(n + 1),
        }));
        field.offer([{ value: "", label: this.#t.mean }, ...numbers]);
      });
    }
    const text = (value: number | null) => (value === null ? "" : String(value));
    this.#layer.show(text(settings.look.layer));
    this.#head.show(text(settings.look.head));
    this.element.toggleAttribute("disabled", model === null);
  }
}

export class RunView {
  readonly element: HTMLElement;
  readonly #writer: Writer;
  readonly #t: WriteMessages;
  readonly #main = h("button", { type: "button", class: "primary" });
  readonly #step: HTMLButtonElement;
  readonly #back: HTMLButtonElement;
  readonly #again: HTMLButtonElement;
  readonly #edit: HTMLButtonElement;
  readonly #pace: Control<Pace>;
  readonly #status = h("p", { class: "run-status" });
  readonly #error = h("div", { class: "refusal", role: "alert" });

  constructor(writer: Writer, t: WriteMessages, edit: () => void) {
    this.#writer = writer;
    this.#t = t;
    const button = (label: string, act: () => void) =>
      h("button", { type: "button", class: "secondary", onclick: act }, label);
    this.#main.addEventListener("click", () => {
      if (writer.state.phase === "writing") writer.pause();
      else void writer.write();
    });
    this.#step = button(t.run.step, () => void writer.step());
    this.#back = button(t.run.back, () => {
      const before = writer.tree.end?.parent;
      if (before?.parent) writer.rewind(before);
    });
    this.#again = button(t.run.again, () => {
      const last = writer.tree.path().findLast(({ given }) => given);
      if (last) writer.rewind(last);
    });
    this.#edit = button(t.run.edit, edit);
    this.#pace = segmented<Pace>(
      t.pace.legend,
      (Object.keys(PACES) as Pace[]).map((value) => ({ value, label: t.pace[value] })),
      (pace) => writer.change({ pace }),
      "pace",
    );
    this.element = h(
      "div",
      { class: "run" },
      h(
        "div",
        { class: "run-line", role: "group", "aria-label": t.run.label },
        this.#main,
        this.#step,
        this.#back,
        this.#again,
        this.#edit,
        this.#pace.element,
      ),
      this.#status,
      this.#error,
    );
  }

  show(): void {
    const { phase, finish, tokensPerSecond, error, settings, model } = this.#writer.state;
    const { run, status } = this.#t;
    const { tree, isGiven } = this.#writer;
    const isWriting = phase === "writing";
    const path = tree.path();
    const ready = model !== null && phase !== "reading" && phase !== "loading";
    const hasWritten = path.some(({ given }) => !given);
    this.#main.textContent = isWriting ? run.pause : hasWritten && isGiven ? run.on : run.write;
    this.#main.disabled = !ready || (settings.prompt === "" && !isWriting);
    this.#step.disabled = !ready || isWriting || settings.prompt === "";
    this.#back.disabled = !ready || path.length < 2;
    this.#again.disabled = !ready || !hasWritten;
    this.#edit.disabled = !ready || path.length === 0 || isWriting;
    this.#pace.show(settings.pace);
    const state = isWriting
      ? status.writing
      : phase === "ended" && finish
        ? status[finish]
        : phase === "paused" && path.length > 0
          ? status.paused
          : phase === "ready"
            ? status.ready
            : "";
    const speed = tokensPerSecond > 0 ? status.speed(formatCount(tokensPerSecond, 3)) : "";
    this.#status.textContent = [state, path.length > 0 ? status.tokens(path.length) : "", speed]
      .filter((part) => part !== "")
      .join(" · ");
    this.#status.dataset.phase = phase;
    this.#error.hidden = error === null;
    if (error !== null)
      this.#error.replaceChildren(h("p", {}, status.failed), h("code", { class: "engine-message", lang: "en" }, error));
  }
}
