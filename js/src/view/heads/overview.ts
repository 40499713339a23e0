/** All layers and heads as small pictures: a grid to look over, and to choose from. */

import type { ColorScale } from "../colours.js";
import type { Attention } from "../data.js";
import { h } from "../dom.js";
import { largestOf } from "../looks.js";
import type { ScaleKind } from "../map/shades.js";
import { Shades } from "../map/shades.js";
import type { Look } from "../styles.js";
import type { Words } from "../words.js";
import { thumbnailOf } from "./thumbnail.js";

export interface OverviewSettings {
  readonly layer: number;
  /** Of that layer. */
  readonly heads: readonly number[];
  readonly scale: ScaleKind;
  readonly colors: ColorScale;
  readonly look: Look;
  readonly matrix: (layer: number, head: number) => Float32Array;
}

export interface OverviewHost {
  choose(layer: number, head: number, more: boolean): void;
}

const WIDEST = 96;
const NARROWEST = 14;
const GAP = 3;
const NAMES = 24;
/** So many milliseconds at a time: the page goes on while large texts are drawn. */
const SLICE = 40;

export class Overview {
  readonly element = h("div", { part: "overview", class: "overview", role: "grid" });
  readonly #host: OverviewHost;
  #cells: HTMLButtonElement[][] = [];
  #made = "";
  #madeOf: Attention | null = null;
  #pending: [layer: number, head: number][] = [];
  #frame = 0;
  #settings: OverviewSettings | null = null;
  #pixels = 0;

  constructor(host: OverviewHost) {
    this.#host = host;
    this.element.addEventListener("click", (event) => {
      const place = this.#placeOf(event.target);
      if (place) host.choose(...place, event.shiftKey || event.ctrlKey || event.metaKey);
    });
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Draws what is still to be drawn. */
  finish(): void {
    if (this.#pending.length > 0) this.#draw(Number.POSITIVE_INFINITY);
  }

  /** The pictures, layer by layer. */
  get canvases(): HTMLCanvasElement[][] {
    return this.#cells.map((row) => row.map((cell) => cell.firstChild as HTMLCanvasElement));
  }

  show(attention: Attention, settings: OverviewSettings, room: number, words: Words): void {
    const { layer, heads, scale, colors, look } = settings;
    this.#settings = settings;
    const size = Math.floor(Math.max(NARROWEST, Math.min(WIDEST, (room - NAMES) / attention.heads - GAP)));
    const pixels = Math.round(size * (window.devicePixelRatio || 1));
    const made = JSON.stringify([attention.layers, attention.heads, pixels, scale, colors, look, words.layer]);
    if (this.#madeOf !== attention || made !== this.#made) {
      this.#made = made;
      this.#madeOf = attention;
      this.#pixels = pixels;
      this.#build(attention, size, words);
      this.#pending = this.#cells.flatMap((row, l) => row.map((_, head): [number, number] => [l, head]));
      this.#draw(SLICE);
    }
    this.element.setAttribute("aria-label", words.overview);
    this.element.setAttribute("aria-description", words.overviewHelp);
    this.#cells.forEach((row, l) => {
      row.forEach((cell, head) => {
        cell.setAttribute("aria-selected", String(l === layer && heads.includes(head)));
      });
    });
    this.#rove(layer, heads[0] ?? 0, false);
  }

  #build(attention: Attention, size: number, words: Words): void {
    const { layerNumbers, headNumbers } = attention;
    const ratio = attention.queryLength / attention.keyLength;
    this.element.style.gridTemplateColumns = `max-content repeat(${attention.heads}, ${size}px)`;
    const name = (text: string, column: boolean) =>
      h("span", { class: column ? "name column" : "name", role: column ? "columnheader" : "rowheader" }, text);
    const corner = h(
      "span",
      { class: "name", role: "columnheader" },
      h("span", { class: "visually-hidden" }, words.layer),
    );
    const head = h(
      "div",
      { class: "row", role: "row" },
      corner,
      ...headNumbers.map((number) => name(String(number), true)),
    );
    this.#cells = layerNumbers.map((layer) =>
      headNumbers.map((number) => {
        const canvas = h("canvas", { "aria-hidden": "true" });
        canvas.style.aspectRatio = String(1 / Math.min(2, Math.max(0.25, ratio)));
        const label = `${words.layer} ${layer}, ${words.head} ${number}`;
        return h(
          "button",
          {
            type: "button",
            class: "thumbnail",
            part: "thumbnail",
            role: "gridcell",
            tabindex: -1,
            "aria-label": label,
            title: label,
          },
          canvas,
        );
      }),
    );
    const rows = this.#cells.map((row, layer) =>
      h("div", { class: "row", role: "row" }, name(String(layerNumbers[layer]), false), ...row),
    );
    this.element.replaceChildren(head, ...rows);
  }

  /** A slice of what is still to be drawn, and the rest with the next frame. */
  #draw(milliseconds: number): void {
    cancelAnimationFrame(this.#frame);
    this.element.setAttribute("aria-busy", "true");
    const deadline = performance.now() + milliseconds;
    while (this.#pending.length > 0) {
      const [layer, head] = this.#pending.shift()!;
      this.#thumbnail(layer, head);
      if (performance.now() < deadline) continue;
      this.#frame = requestAnimationFrame(() => this.#draw(SLICE));
      return;
    }
    this.element.removeAttribute("aria-busy");
  }

  #thumbnail(layer: number, head: number): void {
    const attention = this.#madeOf!;
    const { scale, colors, look, matrix } = this.#settings!;
    const numbers = matrix(layer, head);
    const { rows, columns, data } = thumbnailOf(
      numbers,
      attention.queryLength,
      attention.keyLength,
      attention.kind,
      this.#pixels,
    );
    const canvas = this.#cells[layer]?.[head]?.firstChild as HTMLCanvasElement;
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext("2d")!;
    const image = context.createImageData(columns, rows);
    const shades = new Shades(attention.kind, largestOf(data), scale, colors, look);
    shades.paint(data, columns, [0, 0, rows, columns], new Uint32Array(image.data.buffer), columns);
    context.putImageData(image, 0, 0);
  }

  #placeOf(target: EventTarget | null): [number, number] | null {
    const cell = (target as Element | null)?.closest<HTMLButtonElement>(".thumbnail");
    if (!cell) return null;
    const layer = this.#cells.findIndex((row) => row.includes(cell));
    return layer < 0 ? null : [layer, this.#cells[layer]!.indexOf(cell)];
  }

  /** One of them is reached by Tab; the arrows go on from there. */
  #rove(layer: number, head: number, focus: boolean): void {
    const next = this.#cells[layer]?.[head];
    if (!next) return;
    const focused = this.#cells.flat().find((cell) => cell.matches(":focus"));
    for (const cell of this.#cells.flat()) cell.tabIndex = cell === (focus ? next : (focused ?? next)) ? 0 : -1;
    if (focus) next.focus();
  }

  #key(event: KeyboardEvent): void {
    const place = this.#placeOf(event.target);
    if (!place || event.ctrlKey || event.metaKey || event.altKey) return;
    const [layer, head] = place;
    const lastHead = (this.#cells[0]?.length ?? 1) - 1;
    const moves: Record<string, [number, number]> = {
      ArrowUp: [Math.max(0, layer - 1), head],
      ArrowDown: [Math.min(this.#cells.length - 1, layer + 1), head],
      ArrowLeft: [layer, Math.max(0, head - 1)],
      ArrowRight: [layer, Math.min(lastHead, head + 1)],
      Home: [layer, 0],
      End: [layer, lastHead],
    };
    const to = moves[event.key];
    if (to) this.#rove(...to, true);
    else if (event.key === "Enter" || event.key === " ") this.#host.choose(layer, head, event.shiftKey);
    else return;
    event.preventDefault();
  }
}
