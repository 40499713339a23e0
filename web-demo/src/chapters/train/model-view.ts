/** One of the models as it was after a step: what it writes, and how each of its heads looks at one sentence. */
import { h } from "../../view/dom";
import { drawThumb, HeadMap, type Shades } from "./heads-view";
import type { TrainMessages } from "./locales/en";
import type { Snapshot } from "./protocol";
import type { Run } from "./training";

export class ModelView {
  readonly element: HTMLElement;
  readonly #t: TrainMessages["model"];
  readonly #shades: () => Shades;
  readonly #sample = h("p", { class: "sample" });
  readonly #grid = h("div", { class: "thumbs" });
  readonly #hint = h("p", { class: "hint" });
  readonly #map: HeadMap;
  #canvases: HTMLCanvasElement[] = [];
  #buttons: HTMLButtonElement[] = [];
  #shape = "";
  #shown: Snapshot | null = null;
  #chosen: number | null = null;

  constructor(which: "masked" | "leaking", t: TrainMessages["model"], shades: () => Shades) {
    this.#t = t;
    this.#shades = shades;
    this.#map = new HeadMap(t, () => this.#choose(null));
    this.element = h(
      "section",
      { class: `card model-card ${which}`, "aria-label": t[which] },
      h("h3", {}, t[which]),
      h("h4", {}, t.writes),
      this.#sample,
      h("h4", {}, t.looks),
      this.#hint,
      this.#grid,
      this.#map.element,
    );
  }

  show(run: Run | null, step: number | null): void {
    this.element.hidden = run === null;
    if (!run) return;
    const { layers, heads, sentence, prompt } = run.config;
    const snapshot = (step === null ? run.snapshots.at(-1) : run.snapshots.findLast((one) => one.step <= step)) ?? null;
    if (this.#shape !== `${layers} ${heads}`) this.#build(layers, heads);
    if (snapshot === this.#shown) return;
    this.#shown = snapshot;
    this.#hint.textContent = this.#t.looksHint(sentence.trim());
    this.#write(snapshot, prompt);
    this.#draw();
  }

  repaint(): void {
    this.#draw();
  }

  #write(snapshot: Snapshot | null, prompt: string): void {
    this.#sample.replaceChildren(h("span", { class: "prompt", title: this.#t.prompt }, prompt), snapshot?.sample ?? "");
    this.#sample.dataset.step = snapshot ? String(snapshot.step) : "";
  }

  #build(layers: number, heads: number): void {
    this.#shape = `${layers} ${heads}`;
    this.#chosen = null;
    this.#canvases = [];
    this.#buttons = [];
    const rows = Array.from({ length: layers }, (_, layer) => {
      const cells = Array.from({ length: heads }, (_, head) => {
        const canvas = h("canvas", { "aria-hidden": "true" });
        const index = layer * heads + head;
        const button = h(
          "button",
          {
            type: "button",
            class: "thumb",
            title: this.#t.thumb(layer + 1, head + 1),
            "aria-label": this.#t.enlarge(layer + 1, head + 1),
            "aria-pressed": "false",
            onclick: () => this.#choose(this.#chosen === index ? null : index),
          },
          canvas,
        );
        this.#canvases.push(canvas);
        this.#buttons.push(button);
        return button;
      });
      const row = h(
        "div",
        { class: "thumb-row" },
        h("span", { class: "layer" }, this.#t.layer(layer + 1)),
        h("div", { class: "thumb-cells" }, ...cells),
      );
      row.style.setProperty("--heads", String(heads));
      return row;
    });
    this.#grid.replaceChildren(...rows);
  }

  #choose(index: number | null): void {
    const before = this.#chosen;
    this.#chosen = index;
    this.#draw();
    if (index === null && before !== null) this.#buttons[before]?.focus();
  }

  #draw(): void {
    const snapshot = this.#shown;
    const heads = Number(this.#shape.split(" ")[1]);
    this.#buttons.forEach((button, index) => {
      button.setAttribute("aria-pressed", String(index === this.#chosen));
    });
    if (!snapshot) return;
    const shades = this.#shades();
    const size = snapshot.tokens.length;
    const mapOf = (index: number) => snapshot.maps.subarray(index * size * size, (index + 1) * size * size);
    this.#canvases.forEach((canvas, index) => {
      drawThumb(canvas, mapOf(index), size, shades);
    });
    if (this.#chosen === null) this.#map.hide();
    else {
      const [layer, head] = [Math.floor(this.#chosen / heads), this.#chosen % heads];
      this.#map.show(mapOf(this.#chosen), snapshot.tokens, this.#t.map(layer + 1, head + 1, snapshot.step));
    }
  }
}
