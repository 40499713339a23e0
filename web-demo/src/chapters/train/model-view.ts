/** One of the models as it was after a step: what it writes, and how each of its heads looks at one sentence. */
import "lookback/view";
import { h } from "../../view/dom";
import type { TrainMessages } from "./locales/en";
import type { Snapshot } from "./protocol";
import type { Run } from "./training";

const MAP_HEIGHT = 380;

/** Between Chinese characters a line break is no space. */
const CHINESE_BREAK = /(?<=[\u2e80-\uffef])\s*\n\s*/g;

export class ModelView {
  readonly element: HTMLElement;
  readonly #t: TrainMessages["model"];
  readonly #sample = h("p", { class: "sample" });
  readonly #hint = h("p", { class: "hint" });
  readonly #title = h("h4", {});
  readonly #looks: HTMLElement;
  readonly #heads;
  readonly #map;
  /** undefined = nothing yet, null = a run without one. */
  #shown: Snapshot | null | undefined;

  constructor(which: "masked" | "leaking", t: TrainMessages["model"]) {
    this.#t = t;
    const id = `heads-${which}`;
    const both = { head: 0, "hide-toolbar": true, "token-format": "text" };
    this.#heads = h("attention-heads", { ...both, id, view: "overview" });
    this.#heads.label = t.looks;
    this.#heads.addEventListener("attention-head", () => this.#name());
    this.#map = h("attention-map", { ...both, for: id, marginals: "none", "max-height": MAP_HEIGHT });
    this.#looks = h("div", { class: "looks-of", hidden: true }, h("h4", {}, t.looks), this.#hint, this.#heads);
    this.#looks.append(this.#title, this.#map);
    this.element = h(
      "section",
      { class: `card model-card ${which}`, "aria-label": t[which] },
      h("h3", {}, t[which]),
      h("h4", {}, t.writes),
      this.#sample,
      this.#looks,
    );
  }

  /** Draws something before it is seen: the first snapshot comes when the processors are busiest, and then finds all code at hand. */
  warmUp(): void {
    const head = [1, 0, 0.5, 0.5];
    this.#heads.data = { weights: { data: Float32Array.of(...head, ...head), dims: [1, 1, 2, 2, 2] } };
  }

  show(run: Run | null, step: number | null): void {
    this.element.hidden = run === null;
    if (!run) return;
    const { sentence, prompt } = run.config;
    const snapshot = (step === null ? run.snapshots.at(-1) : run.snapshots.findLast((one) => one.step <= step)) ?? null;
    if (snapshot === this.#shown) return;
    this.#shown = snapshot;
    this.#hint.textContent = this.#t.looksHint(sentence.trim().replace(CHINESE_BREAK, ""));
    this.#write(snapshot, prompt);
    this.#looks.hidden = snapshot === null;
    if (snapshot) this.#draw(run, snapshot);
  }

  #write(snapshot: Snapshot | null, prompt: string): void {
    this.#sample.replaceChildren(h("span", { class: "prompt", title: this.#t.prompt }, prompt), snapshot?.sample ?? "");
    this.#sample.dataset.step = snapshot ? String(snapshot.step) : "";
  }

  #draw({ config: { layers, heads } }: Run, { maps, tokens }: Snapshot): void {
    const counted = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
    this.#heads.data = {
      weights: { data: maps, dims: [layers, 1, heads, tokens.length, tokens.length] },
      tokens: [...tokens],
      layers: counted(layers),
      heads: counted(heads),
    };
    void this.#heads.updated.then(() => this.#name());
  }

  /** Which head is seen large. */
  #name(): void {
    const { attention, layer, head } = this.#heads;
    if (!attention || !this.#shown) return;
    const heads = attention.headList(head).map((each) => attention.headNumbers[each]);
    const title = this.#t.map(attention.layerNumbers[layer] ?? 1, heads.join(" + "), this.#shown.step);
    this.#title.textContent = title;
    this.#map.label = title;
  }
}
