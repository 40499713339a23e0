/** Maps of heads: small ones to see them form, and one of them large. */
import "lookback/view";
import type { AttentionMap } from "lookback/view";
import { h } from "../view/dom";
import type { Palette } from "../view/palette";
import type { TrainMessages } from "./locales/en";

/** One pixel per cell; the page's style makes it larger. */
export function drawThumb(canvas: HTMLCanvasElement, map: Float32Array, size: number, palette: Palette): void {
  if (canvas.width !== size) {
    canvas.width = size;
    canvas.height = size;
  }
  const context = canvas.getContext("2d");
  if (!context) return;
  const shade = palette.weight;
  for (let row = 0; row < size; row++)
    for (let col = 0; col < size; col++) {
      context.fillStyle = col > row ? palette.hatchPaper : shade(map[row * size + col] ?? 0);
      context.fillRect(col, row, 1, 1);
    }
}

export class HeadMap {
  readonly element: HTMLElement;
  readonly #title = h("h4", {});
  readonly #map = document.createElement("attention-map") as AttentionMap;
  #close: HTMLButtonElement;

  constructor(t: TrainMessages["model"], close: () => void) {
    this.#map.setAttribute("hide-toolbar", "");
    this.#map.setAttribute("max-height", "420");
    this.#close = h("button", { type: "button", class: "quiet", onclick: close }, t.close);
    this.element = h(
      "div",
      { class: "head-map", hidden: true },
      h("div", { class: "head-map-title" }, this.#title, this.#close),
      this.#map,
    );
  }

  show(map: Float32Array, tokens: readonly string[], title: string): void {
    this.#title.textContent = title;
    this.#map.label = title;
    this.#map.data = { weights: { data: map, dims: [1, tokens.length, tokens.length] }, tokens: [...tokens] };
    this.element.hidden = false;
  }

  hide(): void {
    this.element.hidden = true;
  }
}
