/** Mask lab: a mask composed and drawn, what each row sees through it, what lb.diagnose says, and the attention that it lets through. */
import type { Diagnosis, Lookback, Mask } from "lookback";
import "lookback/view";
import type { Chapter, ChapterContext } from "../../app/chapter";
import type { Lang } from "../../app/state";
import { embed } from "../../engine/embed";
import { project } from "../../engine/engine";
import { projections, WIDTH } from "../../engine/story";
import { slider } from "../../view/controls";
import { copyButton } from "../../view/copy";
import { h } from "../../view/dom";
import { formatPercent } from "../../view/format";
import { type Composer, createComposer } from "./composer";
import { createEditor, type Editor } from "./editor";
import { en, type MaskLabMessages } from "./en";
import "./mask-lab.css";
import {
  codeOf,
  drawnOn,
  LONGEST,
  maskOf,
  type Place,
  PRESETS,
  preset,
  type Recipe,
  readRecipe,
  resized,
  SHORTEST,
  writeRecipe,
} from "./recipe";
import { zh } from "./zh";

const MESSAGES: Readonly<Record<Lang, MaskLabMessages>> = { en, zh };

/** Words to look at; a shorter mask uses the first of them. */
const WORDS = {
  en: "The ship that left the harbour before dawn came back at night with more fish than any of us had ever seen there".split(
    " ",
  ),
  zh: [..."天还没亮就出海的那条船夜里回来时带着比谁见过的都多"],
};

/** Whole runs as 0–3, single places as 5. */
function runs(keys: readonly number[]): string {
  const parts: string[] = [];
  for (let from = 0; from < keys.length; ) {
    let to = from;
    while (to + 1 < keys.length && keys[to + 1] === (keys[to] ?? 0) + 1) to++;
    parts.push(from === to ? String(keys[from]) : `${keys[from]}–${keys[to]}`);
    from = to + 1;
  }
  return parts.join(", ");
}

function seenBy(mask: Mask, row: number, length: number): number[] {
  return Array.from({ length }, (_, key) => key).filter((key) => mask.visible(row, key));
}

/** Vectors of the words, one head of them. */
function exampleVectors(lb: Lookback, tokens: readonly string[]) {
  const x = embed(tokens, WIDTH);
  const all = projections();
  const tensor = (weight: typeof all.q) => {
    const { rows, cols, data } = project(lb, x, weight);
    return { data, dims: [rows, cols] };
  };
  return { q: tensor(all.q), k: tensor(all.k), v: tensor(all.v) };
}

function diagnosisList(t: MaskLabMessages, diagnosis: Diagnosis): HTMLElement[] {
  const { futureWeight } = diagnosis.examined;
  const future = futureWeight === undefined ? [] : [h("p", { class: "hint" }, t.future(formatPercent(futureWeight)))];
  if (diagnosis.length === 0)
    return [h("div", { class: "verdict", "data-tone": "good" }, h("p", {}, t.healthy)), ...future];
  return [
    ...diagnosis.map(({ code, severity, message }) =>
      h(
        "div",
        { class: "verdict", "data-tone": severity === "info" ? "note" : "bad", "data-code": code },
        h("p", {}, t.findings[code]),
        h("p", { class: "engine-message", lang: "en" }, message),
      ),
    ),
    ...future,
  ];
}

/** What is made anew for each language. */
interface Controls {
  readonly editor: Editor;
  readonly composer: Composer;
  readonly length: ReturnType<typeof slider>;
  readonly undraw: HTMLButtonElement;
}

class MaskLab {
  readonly element = h("div", { class: "column lab mask-lab" });
  readonly #lb: Lookback;
  readonly #context: ChapterContext;
  readonly #map = h("attention-map", { marginals: "none", "max-height": 460, numbers: true });
  readonly #pointed = h("p", { class: "mask-pointed", role: "status" });
  readonly #drawn = h("span", {});
  readonly #blind = h("p", { class: "mask-blind", role: "status" });
  readonly #rows = h("tbody", {});
  readonly #diagnosis = h("div", { class: "diagnosis" });
  readonly #code = h("code", {});
  #lang: Lang;
  #controls: Controls;
  #recipe: Recipe;
  #mask: Mask;

  constructor(lb: Lookback, context: ChapterContext) {
    this.#lb = lb;
    this.#context = context;
    this.#lang = context.lang;
    this.#recipe = readRecipe(context.parameters);
    this.#mask = maskOf(this.#recipe);
    this.#map.addEventListener("attention-hover", (event) => {
      const detail = (event as CustomEvent<{ query: number; key: number } | null>).detail;
      this.#point(detail ? [detail.query, detail.key] : null, false);
    });
    this.#controls = this.#build();
    this.#show();
  }

  get #t(): MaskLabMessages {
    return MESSAGES[this.#lang];
  }

  get #words(): readonly string[] {
    return WORDS[this.#lang];
  }

  translate(lang: Lang): void {
    this.#lang = lang;
    this.#controls = this.#build();
    this.#show();
  }

  #makeControls(): Controls {
    const t = this.#t;
    const undraw = h("button", { type: "button", class: "quiet" }, t.undraw);
    undraw.addEventListener("click", () => this.#change({ ...this.#recipe, shown: [], hidden: [] }));
    return {
      editor: createEditor(t, {
        draw: (cells, visible) => this.#change(drawnOn(this.#recipe, cells, visible)),
        point: (place) => this.#point(place),
      }),
      composer: createComposer(t, (terms) => this.#change({ ...this.#recipe, terms })),
      length: slider(
        t.length,
        { min: SHORTEST, max: LONGEST, marks: false },
        (value) => String(value),
        (length) => this.#change(resized(this.#recipe, length)),
      ),
      undraw,
    };
  }

  /** The whole chapter in its language. */
  #build(): Controls {
    const t = this.#t;
    const controls = this.#makeControls();
    this.#map.label = t.weightsLabel;
    const presets = PRESETS.map((name) => {
      const button = h("button", { type: "button", class: "pill", "data-preset": name }, t.presets[name]);
      button.addEventListener("click", () => this.#change(preset(name, this.#recipe.length)));
      return button;
    });
    const rows = h(
      "details",
      { class: "mask-rows", open: this.element.querySelector("details")?.open },
      h("summary", {}, t.rows),
      h(
        "table",
        { class: "plain" },
        h("thead", {}, h("tr", {}, ...t.rowHead.map((name) => h("th", { scope: "col" }, name)))),
        this.#rows,
      ),
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
        { class: "pills", role: "group", "aria-label": t.presetsTitle },
        h("span", {}, t.presetsTitle),
        ...presets,
      ),
      h(
        "div",
        { class: "lab-grid" },
        h("section", { class: "panel mask-side" }, controls.length.element, controls.composer.element),
        h(
          "section",
          { class: "mask-main" },
          h("h2", {}, t.drawTitle),
          controls.editor.element,
          h("p", { class: "hint mask-drawn" }, this.#drawn, " ", controls.undraw),
          this.#blind,
          this.#pointed,
          rows,
        ),
        h(
          "section",
          { class: "mask-weights" },
          h("h2", {}, t.weightsTitle),
          h("p", { class: "hint" }, t.weightsLead),
          this.#map,
        ),
        h("section", { class: "mask-verdicts" }, h("h2", {}, t.diagnosisTitle), this.#diagnosis),
      ),
      h(
        "section",
        { class: "mask-code" },
        h(
          "div",
          { class: "code-head" },
          h("h2", {}, t.codeTitle),
          copyButton({ copy: t.copy, copied: t.copied, failed: t.copyFailed }, () => this.#code.textContent ?? ""),
        ),
        h("pre", { class: "code", tabindex: 0, "aria-label": t.codeTitle }, this.#code),
      ),
    );
    return controls;
  }

  /** What a link or the way back asks for. */
  read(parameters: URLSearchParams): void {
    this.#recipe = readRecipe(parameters);
    this.#show();
  }

  #change(recipe: Recipe): void {
    this.#recipe = recipe;
    this.#show();
    this.#context.share(writeRecipe(recipe));
  }

  #point(place: Place | null, onMap = true): void {
    this.#controls.editor.highlight(place);
    if (onMap) this.#map.point(place && { query: place[0], key: place[1] });
    if (!place) {
      this.#pointed.textContent = this.#t.pointHint;
      return;
    }
    const seen = seenBy(this.#mask, place[0], this.#recipe.length);
    const names = seen.map((key) => this.#words[key] ?? "").join(this.#lang === "zh" ? "、" : ", ");
    this.#pointed.textContent = this.#t.pointed(this.#words[place[0]] ?? "", seen.length, names);
  }

  #show(): void {
    const t = this.#t;
    const { length, shown, hidden } = this.#recipe;
    const tokens = this.#words.slice(0, length);
    this.#mask = maskOf(this.#recipe);
    const { editor, composer, length: slider, undraw } = this.#controls;
    editor.show(this.#mask, tokens);
    composer.show(this.#recipe);
    slider.show(length);
    slider.output.textContent = String(length);
    const byHand = shown.length + hidden.length;
    this.#drawn.textContent = t.drawn(byHand);
    undraw.hidden = byHand === 0;
    this.#showRows(tokens);
    this.#code.textContent = codeOf(this.#recipe);
    const { q, k, v } = exampleVectors(this.#lb, tokens);
    const options = { heads: 1, mask: this.#mask };
    const { weights } = this.#lb.attention(q, k, v, { ...options, weights: "softmax" });
    this.#map.data = { weights, tokens, q, k, v };
    this.#diagnosis.replaceChildren(...diagnosisList(t, this.#lb.diagnose(q, k, v, options)));
    this.#pointed.textContent = t.pointHint;
  }

  #showRows(tokens: readonly string[]): void {
    const t = this.#t;
    const blind: number[] = [];
    const lines = tokens.map((token, row) => {
      const seen = seenBy(this.#mask, row, tokens.length);
      if (seen.length === 0) blind.push(row);
      return h(
        "tr",
        { class: seen.length === 0 ? "blind" : undefined },
        h("th", { scope: "row" }, String(row)),
        h("td", {}, h("bdi", {}, token)),
        h("td", {}, h("data", { value: seen.length }, String(seen.length))),
        h("td", {}, seen.length === 0 ? t.none : runs(seen)),
      );
    });
    this.#rows.replaceChildren(...lines);
    this.#blind.hidden = blind.length === 0;
    this.#blind.textContent = blind.length === 0 ? "" : t.blind(blind.length, runs(blind));
  }
}

export const chapter: Chapter = {
  async mount(container, context) {
    const lab = new MaskLab(await context.engine(), context);
    container.append(lab.element);
    return {
      unmount() {},
      navigate: (parameters) => lab.read(parameters),
      translate: (lang) => lab.translate(lang),
    };
  },
};
