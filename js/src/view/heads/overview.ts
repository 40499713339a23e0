/** All layers and heads as small pictures: a grid to look over, and to choose from. */

import type { ColorScale } from "../colours.js";
import type { Attention } from "../data.js";
import { h } from "../dom.js";
import { largestOf, matrixOf } from "../looks.js";
import type { ScaleKind } from "../map/shades.js";
import { Shades } from "../map/shades.js";
import type { Look } from "../styles.js";
import type { Words } from "../words.js";
import { paintThumbnail, thumbnailOf } from "./thumbnail.js";

export interface OverviewSettings {
  readonly layer: number;
  /** Of that layer. */
  readonly heads: readonly number[];
  readonly scale: ScaleKind;
  readonly colors: ColorScale;
  readonly look: Look;
  readonly valueWeighted: boolean;
}

export interface OverviewHost {
  choose(layer: number, head: number, more: boolean): void;
}

const WIDEST = 96;
const NARROWEST = 14;
const GAP = 3;
/** Of its width. */
const HIGHEST = 2;
const LOWEST = 0.25;
const NAMES = 24;
/** So many milliseconds at a time: the page goes on while large texts are drawn. */
const SLICE = 60;
/** More than these are first drawn as coarse as CSS pixels, then as fine as the screen. */
const FINE_PIXELS = 2e6;
/** What all browsers draw. */
const WIDEST_CANVAS = 16384;

/** Of one picture, in CSS pixels. */
interface Size {
  readonly width: number;
  readonly height: number;
}

function sizeOf({ heads, queryLength, keyLength }: Attention, room: number): Size {
  const width = Math.floor(Math.max(NARROWEST, Math.min(WIDEST, (room - NAMES) / heads - GAP)));
  const height = Math.max(NARROWEST, Math.round(width * Math.min(HIGHEST, Math.max(LOWEST, queryLength / keyLength))));
  return { width, height };
}

/** A layer's canvas in its own pixels. */
interface Layout {
  readonly columns: number;
  readonly rows: number;
  /** Where the heads' pictures begin and end in it. */
  readonly spans: readonly (readonly [from: number, to: number])[];
}

function layoutOf(heads: number, { width, height }: Size, wanted: number): Layout {
  const density = Math.min(wanted, WIDEST_CANVAS / (heads * (width + GAP)));
  const spans = Array.from({ length: heads }, (_, head) => {
    const from = head * (width + GAP);
    return [Math.round(from * density), Math.round((from + width) * density)] as const;
  });
  return { columns: spans.at(-1)![1], rows: Math.round(height * density), spans };
}

export class Overview {
  readonly element = h("div", { part: "overview", class: "overview", role: "grid" });
  readonly #host: OverviewHost;
  #cells: HTMLButtonElement[][] = [];
  /** A layer's pictures lie on one canvas behind its buttons: browsers draw few large ones much faster than many small ones. */
  #canvases: HTMLCanvasElement[] = [];
  #image: ImageData | null = null;
  #built = "";
  #painted = "";
  #paintedOf: Attention | null = null;
  #pending: { readonly layer: number; readonly layout: Layout }[] = [];
  /** Of these the page already shows something. */
  #refinements = 0;
  #frame = 0;
  #settings: OverviewSettings | null = null;

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

  /** A layer's pictures side by side, layer by layer. */
  get canvases(): readonly HTMLCanvasElement[] {
    return this.#canvases;
  }

  /** What is pressed to choose a head, layer by layer. */
  get cells(): readonly (readonly HTMLButtonElement[])[] {
    return this.#cells;
  }

  show(attention: Attention, settings: OverviewSettings, room: number, words: Words): void {
    const { layer, heads, scale, colors, look, valueWeighted } = settings;
    this.#settings = settings;
    const size = sizeOf(attention, room);
    const built = JSON.stringify([attention.layerNumbers, attention.headNumbers, size, words.layer, words.head]);
    if (built !== this.#built) {
      this.#built = built;
      this.#build(attention, size, words);
      this.#paintedOf = null;
    }
    const density = window.devicePixelRatio || 1;
    const painted = JSON.stringify([scale, colors, look, valueWeighted, density]);
    if (this.#paintedOf !== attention || painted !== this.#painted) {
      this.#painted = painted;
      this.#paintedOf = attention;
      this.#image = null;
      const all = (layout: Layout) => this.#canvases.map((_, l) => ({ layer: l, layout }));
      const fine = layoutOf(attention.heads, size, density);
      const inSteps = density > 1 && fine.columns * fine.rows * attention.layers > FINE_PIXELS;
      this.#pending = inSteps ? [...all(layoutOf(attention.heads, size, 1)), ...all(fine)] : all(fine);
      this.#refinements = inSteps ? attention.layers : 0;
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

  #build(attention: Attention, { width, height }: Size, words: Words): void {
    const { layerNumbers, headNumbers } = attention;
    this.element.style.gridTemplateColumns = `max-content repeat(${attention.heads}, ${width}px)`;
    this.element.style.gridTemplateRows = `auto repeat(${attention.layers}, ${height}px)`;
    const place = <E extends HTMLElement>(item: E, row: number, column: number): E => {
      item.style.gridArea = `${row + 1} / ${column + 1}`;
      return item;
    };
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
      place(corner, 0, 0),
      ...headNumbers.map((number, index) => place(name(String(number), true), 0, index + 1)),
    );
    this.#cells = layerNumbers.map((layer, l) =>
      headNumbers.map((number, index) => {
        const label = `${words.layer} ${layer}, ${words.head} ${number}`;
        const button = h("button", {
          type: "button",
          class: "thumbnail",
          part: "thumbnail",
          role: "gridcell",
          tabindex: -1,
          "aria-label": label,
          title: label,
        });
        return place(button, l + 1, index + 1);
      }),
    );
    this.#canvases = layerNumbers.map((_, l) => {
      const canvas = h("canvas", { "aria-hidden": "true" });
      canvas.style.gridArea = `${l + 2} / 2 / auto / -1`;
      return canvas;
    });
    const rows = this.#cells.map((row, l) =>
      h(
        "div",
        { class: "row", role: "row" },
        place(name(String(layerNumbers[l]), false), l + 1, 0),
        this.#canvases[l]!,
        ...row,
      ),
    );
    this.element.replaceChildren(head, ...rows);
  }

  /**
   * A slice of what is still to be drawn, and the rest with the next frame; what is only refined waits for a frame each, and nobody for it:
   * the overview is busy until something of all is there.
   */
  #draw(milliseconds: number): void {
    cancelAnimationFrame(this.#frame);
    const deadline = performance.now() + milliseconds;
    while (this.#pending.length > 0) {
      const { layer, layout } = this.#pending.shift()!;
      this.#paint(layer, layout);
      const refines = this.#pending.length <= this.#refinements;
      if (refines) this.element.removeAttribute("aria-busy");
      else this.element.setAttribute("aria-busy", "true");
      if (this.#pending.length === 0) break;
      if (milliseconds === Number.POSITIVE_INFINITY || (!refines && performance.now() < deadline)) continue;
      this.#frame = requestAnimationFrame(() => this.#draw(SLICE));
      return;
    }
    this.#image = null;
  }

  /** All heads of a layer. */
  #paint(layer: number, { columns, rows, spans }: Layout): void {
    const attention = this.#paintedOf!;
    const { queryLength, keyLength, kind } = attention;
    const { scale, colors, look, valueWeighted } = this.#settings!;
    if (this.#image?.width !== columns || this.#image.height !== rows) this.#image = new ImageData(columns, rows);
    const pixels = new Uint32Array(this.#image.data.buffer);
    spans.forEach(([from, to], head) => {
      const matrix = matrixOf(attention, layer, head, valueWeighted);
      const picture = thumbnailOf(matrix, queryLength, keyLength, kind, rows, to - from);
      const shades = new Shades(kind, largestOf(picture.data), scale, colors, look);
      paintThumbnail(picture, shades, rows, to - from, pixels.subarray(from), columns);
    });
    const canvas = this.#canvases[layer]!;
    if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, { width: columns, height: rows });
    canvas.getContext("2d")!.putImageData(this.#image, 0, 0);
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
