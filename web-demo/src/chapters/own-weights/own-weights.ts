/** Your own weights: attention from elsewhere, looked at with the elements of `lookback/view`. */
import type { HeadChoice, HeadDetail } from "lookback/view";
import type { Chapter, ChapterContext } from "../../app/chapter";
import type { Lang } from "../../app/state";
import { h } from "../../view/dom";
import { formatNumber } from "../../view/format";
import { en, type OwnWeightsMessages } from "./en";
import { EXAMPLES, type Example, exampleText, SHORT_EXAMPLE } from "./examples";
import "./own-weights.css";
import { type OwnWeights, readWeights, WeightsError } from "./parse";
import { zh } from "./zh";

const MESSAGES: Readonly<Record<Lang, OwnWeightsMessages>> = { en, zh };

/** More characters than this are read, but not shown in the text field, which would take long. */
const SHOWN = 200_000;

function tokensOf(text: string): string[] {
  const trimmed = text.trim();
  if (trimmed.startsWith("["))
    try {
      const list: unknown = JSON.parse(trimmed);
      if (Array.isArray(list)) return list.map(String);
    } catch {
      // Then it is a text that begins with a bracket.
    }
  return trimmed === "" ? [] : trimmed.split(/\s+/);
}

class OwnWeightsView {
  readonly element = h("div", { class: "column lab own-weights" });
  readonly #context: ChapterContext;
  readonly #area = h("textarea", { rows: 9, spellcheck: "false" });
  readonly #tokens = h("input", { type: "text", autocomplete: "off", "aria-describedby": "own-tokens-hint" });
  readonly #problem = h("div", { class: "refusal", role: "alert", hidden: true });
  readonly #result = h("section", { class: "own-result", hidden: true });
  readonly #shape = h("p", { class: "own-shape", role: "status" });
  readonly #sums = h("p", { class: "hint" });
  readonly #map = h("attention-map", { id: "own-map", "max-height": 620, numbers: true });
  readonly #heads = h("attention-heads", { for: "own-map", view: "overview", "hide-toolbar": true, "max-height": 360 });
  readonly #words = h("attention-text", { for: "own-map" });
  #lang: Lang;
  /** The built-in example that is shown, if it is one. */
  #example: Example | null = null;
  /** A file whose contents the text field does not show. */
  #file: string | null = null;
  #chosen: { readonly layer: string | null; readonly head: string | null };
  /** What is read: the text field's, or a file's that is no text. */
  #source: string | ArrayBuffer = "";
  #read: OwnWeights | null = null;
  #reading = 0;

  constructor(context: ChapterContext) {
    this.#context = context;
    this.#lang = context.lang;
    const { parameters } = context;
    this.#chosen = { layer: parameters.get("layer"), head: parameters.get("head") };
    // Whichever of the elements the reader chose in.
    this.#result.addEventListener("attention-head", (event) => {
      const { layer, head } = (event as CustomEvent<HeadDetail>).detail;
      this.#tellSums(layer, head);
      this.#chosen = { layer: String(layer), head: String(head) };
      this.#context.share(new URLSearchParams({ layer: String(layer), head: String(head) }));
    });
    this.#area.addEventListener("input", () => {
      this.#file = null;
      this.#take(this.#area.value);
    });
    this.#tokens.addEventListener("input", () => void this.#look());
    this.#build();
  }

  get #t(): OwnWeightsMessages {
    return MESSAGES[this.#lang];
  }

  /** An example is one of the other language; what the reader brought stays. */
  translate(lang: Lang): void {
    this.#lang = lang;
    this.#build();
    if (this.#example) void this.example(this.#example);
    else void this.#look();
  }

  #build(): void {
    const t = this.#t;
    this.#map.label = t.map;
    this.#area.placeholder = this.#file ?? t.placeholder;
    this.#area.setAttribute("aria-label", t.drop);
    const file = h("input", {
      type: "file",
      accept: ".json,.csv,.tsv,.txt,.npy,application/json,text/*",
      class: "visually-hidden",
    });
    file.addEventListener("change", () => void this.#open(file.files?.[0]));
    const zone = h("div", { class: "drop-zone" }, h("h2", {}, t.drop), this.#area);
    zone.addEventListener("dragover", (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
    for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      const given = event.dataTransfer?.files[0];
      if (!given) return;
      event.preventDefault();
      void this.#open(given);
    });
    const examples = EXAMPLES.map((name) => {
      const button = h("button", { type: "button", class: "pill", "data-example": name }, t.exampleNames[name]);
      button.addEventListener("click", () => void this.example(name));
      return button;
    });
    this.#result.replaceChildren(
      h("h2", {}, t.result),
      this.#shape,
      this.#heads,
      this.#map,
      this.#sums,
      h("h2", {}, t.text),
      this.#words,
    );
    this.element.replaceChildren(
      h(
        "header",
        { class: "lab-head" },
        h("p", { class: "eyebrow" }, t.eyebrow),
        h("h1", { tabindex: -1 }, t.title),
        h("p", { class: "lead" }, t.lead),
      ),
      h(
        "div",
        { class: "lab-grid" },
        h(
          "section",
          { class: "panel" },
          zone,
          this.#problem,
          h("div", { class: "pills" }, h("label", { class: "pill file" }, file, t.open)),
          h("p", { class: "hint" }, t.kinds),
          h("div", { class: "pills", role: "group", "aria-label": t.examples }, h("span", {}, t.examples), ...examples),
          h("label", { class: "own-tokens" }, h("span", {}, t.tokens), this.#tokens),
          h("p", { class: "hint", id: "own-tokens-hint" }, t.tokensHint),
        ),
        this.#result,
      ),
    );
  }

  async example(name: Example): Promise<void> {
    const lb = await this.#context.engine();
    this.#area.value = exampleText(lb, name, this.#t.sample);
    this.#tokens.value = "";
    this.#file = null;
    this.#take(this.#area.value);
    this.#example = name;
  }

  async #open(file: File | undefined): Promise<void> {
    if (!file) return;
    const bytes = await file.arrayBuffer();
    const text = bytes.byteLength <= SHOWN ? new TextDecoder().decode(bytes) : "";
    // What is no text, or too long to be shown, is only named.
    this.#area.value = text.includes("\u0000") || text.includes("\ufffd") ? "" : text;
    this.#file = this.#area.value === "" ? file.name : null;
    this.#area.placeholder = this.#file ?? this.#t.placeholder;
    this.#take(bytes);
  }

  #take(source: string | ArrayBuffer): void {
    this.#source = source;
    this.#example = null;
    void this.#look();
  }

  async #look(): Promise<void> {
    const reading = ++this.#reading;
    this.#problem.hidden = true;
    if (this.#source === "") {
      this.#result.hidden = true;
      return;
    }
    try {
      const read = await readWeights(this.#source, tokensOf(this.#tokens.value));
      if (reading !== this.#reading) return;
      this.#read = read;
      this.#show(read);
    } catch (error) {
      if (reading !== this.#reading) return;
      this.#read = null;
      this.#result.hidden = true;
      this.#refuse(error);
    }
  }

  #refuse(error: unknown): void {
    const t = this.#t;
    const known = error instanceof WeightsError ? error.problem : null;
    const detail = known === null || "message" in known;
    this.#problem.hidden = false;
    this.#problem.dataset.code = known?.code ?? "unknown";
    this.#problem.replaceChildren(
      h("p", {}, t.problem),
      h("p", { class: "hint" }, known ? t.problemText(known) : ""),
      ...(detail ? [h("code", { class: "engine-message", lang: "en" }, String((error as Error).message))] : []),
      h("p", { class: "hint" }, t.likeThis),
      h("pre", { class: "code", tabindex: 0, "aria-label": t.likeThis }, h("code", {}, SHORT_EXAMPLE)),
    );
  }

  #show({ attention, format }: OwnWeights): void {
    const t = this.#t;
    const { layers, heads, queryLength, keyLength, kind } = attention;
    const parts = [t.formats[format], t.shape(layers, heads, queryLength, keyLength)];
    if (kind === "scores") parts.push(t.scores);
    this.#shape.textContent = parts.join(" · ");
    this.#result.hidden = false;
    const inside = (value: string | null, most: number) => {
      const index = Number(value ?? 0);
      return Number.isInteger(index) && index >= 0 && index < most ? index : 0;
    };
    const layer = inside(this.#chosen.layer, layers);
    const head: HeadChoice = this.#chosen.head === "mean" && heads > 1 ? "mean" : inside(this.#chosen.head, heads);
    this.#map.data = attention;
    // They follow what a reader chooses in one of them, but not what the address says.
    for (const element of [this.#map, this.#heads, this.#words]) {
      element.layer = layer;
      element.head = head;
    }
    this.#heads.hidden = layers * heads === 1;
    this.#tellSums(layer, head);
  }

  #tellSums(layer: number, head: HeadChoice): void {
    if (!this.#read) return;
    const { attention } = this.#read;
    const matrix = attention.matrix(layer, head);
    const columns = attention.keyLength;
    const sums = Array.from({ length: attention.queryLength }, (_, row) =>
      matrix.subarray(row * columns, (row + 1) * columns).reduce((sum, weight) => sum + weight, 0),
    );
    this.#sums.hidden = attention.kind === "scores";
    this.#sums.textContent = this.#t.sums(formatNumber(Math.min(...sums), 3), formatNumber(Math.max(...sums), 3));
  }
}

export const chapter: Chapter = {
  async mount(container, context) {
    const view = new OwnWeightsView(context);
    container.append(view.element);
    // Something to look at until the reader brings his own.
    await view.example("heads");
    return { unmount() {}, translate: (lang) => view.translate(lang) };
  },
};
