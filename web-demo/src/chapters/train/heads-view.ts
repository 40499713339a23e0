/** Maps of heads: small ones to see them form, and one of them large. */
import "lookback/view";
import { rgb } from "d3-color";
import type { AttentionMap } from "lookback/view";
import { h } from "../../view/dom";
import type { Palette } from "../../view/palette";
import type { TrainMessages } from "./locales/en";

/** Red, green and blue of 256 weights from 0 to 1. */
export type Shades = Uint8ClampedArray;

export function shadesOf({ weight }: Palette): Shades {
  const shades = new Uint8ClampedArray(256 * 3);
  for (let at = 0; at < 256; at++) {
    const { r, g, b } = rgb(weight(at / 255));
    shades.set([r, g, b], at * 3);
  }
  return shades;
}

/** One pixel per cell; the page's style makes it larger. What is hidden by the mask stays empty. */
export function drawThumb(canvas: HTMLCanvasElement, map: Float32Array, size: number, shades: Shades): void {
  if (canvas.width !== size) {
    canvas.width = size;
    canvas.height = size;
  }
  const context = canvas.getContext("2d");
  if (!context) return;
  const image = context.createImageData(size, size);
  for (let row = 0; row < size; row++)
    for (let col = 0; col <= row; col++) {
      const shade = 3 * Math.round(255 * (map[row * size + col] ?? 0));
      image.data.set(shades.subarray(shade, shade + 3), (row * size + col) * 4);
      image.data[(row * size + col) * 4 + 3] = 255;
    }
  context.putImageData(image, 0, 0);
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
