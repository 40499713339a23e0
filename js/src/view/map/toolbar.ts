/** The controls above a map, and the legend below it. */
import { cssColour, shadeAt } from "../colours.js";
import { saveMenu } from "../controls.js";
import type { Attention, HeadChoice } from "../data.js";
import { h } from "../dom.js";
import { formatRound } from "../format.js";
import type { Words } from "../words.js";
import type { ScaleKind, Shades } from "./shades.js";

export type SaveFormat = "png" | "svg" | "csv";

export interface ToolbarHost {
  choose(layer: number, head: HeadChoice): void;
  zoom(factor: number): void;
  whole(): void;
  scale(scale: ScaleKind): void;
  numbers(on: boolean): void;
  table(open: boolean): void;
  save(format: SaveFormat): void;
  copyHtml(): void;
}

export interface ToolbarState {
  readonly attention: Attention;
  readonly layer: number;
  readonly head: HeadChoice;
  readonly scale: ScaleKind;
  readonly numbers: boolean;
  readonly table: boolean;
}

const ZOOM = 1.6;

function headOf(value: string): HeadChoice {
  if (value === "mean") return value;
  return value.includes(",") ? value.split(",").map(Number) : Number(value);
}

export class Toolbar {
  readonly element = h("div", { part: "toolbar", class: "toolbar", role: "group" });
  readonly #host: ToolbarHost;
  #made: { words: Words; attention: Attention } | null = null;
  #controls: ReturnType<Toolbar["make"]> | null = null;

  constructor(host: ToolbarHost) {
    this.#host = host;
  }

  show(state: ToolbarState, words: Words): void {
    if (!this.#controls || this.#made?.words !== words || this.#made.attention !== state.attention) {
      this.#made = { words, attention: state.attention };
      this.#controls = this.make(state.attention, words);
    }
    const { layer, head, scale, numbers, table } = this.#controls;
    layer.value = String(state.layer);
    // Several heads that a page chose together are an entry of their own.
    if (typeof state.head === "object") this.#addChoice(head, state.head);
    head.value = String(state.head);
    scale.value = state.scale;
    scale.parentElement!.hidden = state.attention.kind === "scores";
    numbers.setAttribute("aria-pressed", String(state.numbers));
    table.setAttribute("aria-expanded", String(state.table));
  }

  #addChoice(select: HTMLSelectElement, heads: readonly number[]): void {
    const value = String(heads);
    if ([...select.options].some((option) => option.value === value)) return;
    const numbers = heads.map((head) => this.#made?.attention.headNumbers[head] ?? head);
    select.append(h("option", { value }, numbers.join(" + ")));
  }

  private make(attention: Attention, words: Words) {
    const host = this.#host;
    const choose = () => host.choose(Number(layer.value), headOf(head.value));
    const options = (numbers: readonly number[]) =>
      numbers.map((number, index) => h("option", { value: index }, String(number)));
    const layer = h("select", { onchange: choose }, ...options(attention.layerNumbers));
    const mean = h("option", { value: "mean" }, words.meanOfHeads);
    const head = h("select", { onchange: choose }, ...options(attention.headNumbers), mean);
    const scale = h(
      "select",
      { onchange: () => host.scale(scale.value as ScaleKind) },
      h("option", { value: "linear" }, words.linear),
      h("option", { value: "log" }, words.logarithmic),
    );
    const button = (sign: string, label: string, act: () => void) =>
      h("button", { type: "button", title: label, "aria-label": label, onclick: act }, sign);
    const numbers = h(
      "button",
      { type: "button", onclick: () => host.numbers(numbers.getAttribute("aria-pressed") !== "true") },
      words.numbers,
    );
    const table = h(
      "button",
      { type: "button", onclick: () => host.table(table.getAttribute("aria-expanded") !== "true") },
      words.table,
    );
    const field = (label: string, control: HTMLElement, shown = true) =>
      h("label", { hidden: !shown }, h("span", {}, label), control);
    this.element.setAttribute("aria-label", words.map);
    this.element.replaceChildren(
      field(words.layer, layer, attention.layers > 1),
      field(words.head, head, attention.heads > 1),
      field(words.scale, scale),
      h(
        "span",
        { class: "group" },
        button("−", words.zoomOut, () => host.zoom(1 / ZOOM)),
        button("+", words.zoomIn, () => host.zoom(ZOOM)),
        button("⤢", words.zoomFit, () => host.whole()),
      ),
      h("span", { class: "group" }, numbers, table),
      this.#saveMenu(words),
    );
    return { layer, head, scale, numbers, table };
  }

  #saveMenu(words: Words): HTMLElement {
    const host = this.#host;
    return saveMenu(words, [
      ["PNG", () => host.save("png")],
      ["SVG", () => host.save("svg")],
      ["CSV", () => host.save("csv")],
      [words.copyHtml, () => host.copyHtml()],
    ]);
  }
}

const STOPS = 16;

/** The ramp with its ends, what masked looks like where something is, and `more`. */
export function showLegend(
  host: HTMLElement,
  shades: Shades,
  masked: "none" | "plain" | "hatched",
  words: Words,
  more: readonly string[],
): void {
  const stops = Array.from({ length: STOPS + 1 }, (_, i) => cssColour(shadeAt(shades.ramp, i / STOPS)));
  const ramp = h("span", { class: "ramp", "aria-hidden": "true" });
  ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const most = formatRound(shades.extent);
  const least =
    shades.kind === "scores" ? `−${most}` : shades.scale === "log" ? `≤ ${formatRound(shades.extent / 1e4)}` : "0";
  const swatch = h("span", { class: `swatch ${masked}`, "aria-hidden": "true" });
  host.replaceChildren(
    h("span", {}, least),
    ramp,
    h("span", {}, most),
    ...(masked === "none" ? [] : [h("span", { class: "masked" }, swatch, words.masked)]),
    ...more.map((text) => h("span", { class: "more" }, text)),
  );
}
