/** <attention-map>: the matrix of one head. */
import type { Attention, HeadChoice } from "../data.js";
import { h } from "../dom.js";
import { AttentionElement } from "../element.js";
import type { CellDetail } from "../events.js";
import { headName } from "../words.js";
import { drawMap, drawPointer, type Picture } from "./draw.js";
import { extentOf, faded, isFiltering, MARGINALS, type MarginalKind, marginalsOf } from "./filter.js";
import { listen } from "./gestures.js";
import { type Layout, labelFont, layoutMap } from "./layout.js";
import { POOLINGS, type Pooling, Pyramid } from "./pyramid.js";
import { detailOf, showReadout, spoken } from "./readout.js";
import { SCALES, type ScaleKind, Shades } from "./shades.js";
import { MAP_STYLES } from "./styles.js";
import { Tiles } from "./tiles.js";
import { type Cell, isWhole, moved, revealing, type View, wholeView, zoomed } from "./viewport.js";

/** Tallest picture that no attribute asks for. */
const HEIGHT = 640;

export class AttentionMap extends AttentionElement {
  static override observedAttributes = [
    ...AttentionElement.observedAttributes,
    "scale",
    "pool",
    "marginals",
    "threshold",
    "top-k",
    "max",
    "numbers",
    "value-weighted",
    "hide-toolbar",
    "max-height",
  ];
  static override styles = MAP_STYLES;

  readonly #base = h("canvas", { part: "canvas", "aria-hidden": "true" });
  readonly #overlay = h("canvas", { class: "overlay", "aria-hidden": "true" });
  readonly #surface = h("div", { part: "map", class: "surface", tabindex: "0", role: "application" });
  readonly #readout = h("div", { part: "readout", class: "readout" });
  #picture: Picture | null = null;
  #made = "";
  #madeOf: Attention | null = null;
  #layout: Layout | null = null;
  #laidOut = "";
  #view: View = { cell: 1, x: 0, y: 0 };
  #cell: Cell | null = null;
  #locked = false;
  #frame = 0;

  constructor() {
    super();
    this.#surface.append(this.#base, this.#overlay);
    this.content.append(this.#surface, this.#readout);
    listen(this.#surface, {
      layout: () => this.#layout,
      view: () => this.#view,
      zoomed: () => this.#layout !== null && !isWhole(this.#layout.frame, this.#view),
      point: (cell) => this.#hover(cell),
      press: (cell) => this.#press(cell),
      zoom: (factor, px, py) => this.#show(this.#layout && zoomed(this.#layout.frame, this.#view, factor, px, py)),
      pan: (dx, dy) => this.#show(this.#layout && moved(this.#layout.frame, this.#view, dx, dy)),
      step: (rows, columns) => this.#step(rows, columns),
      end: (axis, last) => this.#end(axis, last),
      lock: () => this.#cell && this.#press(this.#cell),
      whole: () => this.zoomToFit(),
      release: () => this.#release(),
    });
  }

  /** 'linear', or 'log': each tenth of the largest weight a shade lighter. */
  get scale(): ScaleKind {
    return this.choice("scale", this.getAttribute("scale") ?? "linear", SCALES);
  }
  set scale(scale: ScaleKind) {
    this.setAttribute("scale", scale);
  }

  /** What many cells in one pixel look like: their strongest ('max') or their mean. */
  get pool(): Pooling {
    return this.choice("pool", this.getAttribute("pool") ?? "max", POOLINGS);
  }
  set pool(pooling: Pooling) {
    this.setAttribute("pool", pooling);
  }

  get marginals(): MarginalKind {
    return this.choice("marginals", this.getAttribute("marginals") ?? "mean", MARGINALS);
  }
  set marginals(kind: MarginalKind) {
    this.setAttribute("marginals", kind);
  }

  /** Weights below it are faded. */
  get threshold(): number {
    return this.numberAttribute("threshold", 0);
  }
  set threshold(threshold: number) {
    this.setAttribute("threshold", String(threshold));
  }

  /** Of each query all but the k strongest weights are faded; 0 = none. */
  get topK(): number {
    return this.numberAttribute("top-k", 0);
  }
  set topK(count: number) {
    this.setAttribute("top-k", String(count));
  }

  /** Each weight times the length of its value, where `v` is given. */
  get valueWeighted(): boolean {
    return this.hasAttribute("value-weighted");
  }
  set valueWeighted(weighted: boolean) {
    this.toggleAttribute("value-weighted", weighted);
  }

  /** Numbers in the cells that have room for them. */
  get numbers(): boolean {
    return this.hasAttribute("numbers");
  }
  set numbers(numbers: boolean) {
    this.toggleAttribute("numbers", numbers);
  }

  /** The cell that is pointed at; null = none. */
  get cell(): Cell | null {
    return this.#cell;
  }
  /** Whether it stays when the pointer leaves. */
  get locked(): boolean {
    return this.#locked;
  }

  /** Points at a cell without an event: what follows another picture's event. */
  point(cell: Cell | null, locked = false): void {
    this.#locked = locked && cell !== null;
    this.#cell = cell && this.#inside(cell) ? { query: cell.query, key: cell.key } : null;
    if (this.#cell && this.#layout) this.#view = revealing(this.#layout.frame, this.#view, this.#cell);
    this.#tell(false);
    this.#redraw();
  }

  protected override follow(detail: CellDetail | null, locked: boolean): void {
    const attention = this.#picture?.attention;
    const cell = attention && detail && attention.cellOf(detail.queryToken.position, detail.keyToken.position);
    this.point(cell ?? null, locked);
  }

  zoomToFit(): void {
    if (this.#layout) this.#show(wholeView(this.#layout.frame));
  }

  protected override update(attention: Attention): void {
    const picture = this.#pictureOf(attention);
    const changed = this.#picture?.attention !== attention;
    this.#picture = picture;
    if (changed) {
      this.#cell = this.#cell && this.#inside(this.#cell) ? this.#cell : null;
      this.#locked &&= this.#cell !== null;
    }
    this.#arrange(attention);
    const { words } = this;
    this.#surface.setAttribute("aria-roledescription", words.map);
    this.#surface.setAttribute("aria-label", this.label ?? this.#summary(attention));
    this.#surface.setAttribute("aria-description", words.help);
    this.#tell(false);
    this.#draw();
  }

  #summary(attention: Attention): string {
    const { words } = this;
    const { layer, head } = this.selection(attention);
    return `${words.map}, ${words.layer} ${attention.layerNumbers[layer]}, ${words.head} ${headName(attention, head, words)}: ${words.queries(attention.queryLength)}, ${words.keys(attention.keyLength)}`;
  }

  /** What is drawn, made anew only where something it depends on has changed. */
  #pictureOf(attention: Attention): Picture {
    const { layer, head } = this.selection(attention);
    const { look, pool, scale, marginals, colorScale, valueWeighted } = this;
    const filter = { threshold: this.threshold, topK: this.topK };
    const most = this.numberAttribute("max", 0);
    const made = JSON.stringify([layer, head, look, pool, scale, marginals, colorScale, valueWeighted, filter, most]);
    if (this.#picture && this.#madeOf === attention && this.#made === made)
      return { ...this.#picture, numbers: this.numbers };
    const matrix = this.#matrixOf(attention, layer, head);
    const { queryLength: rows, keyLength: columns, kind } = attention;
    const filtering = kind === "weights" && isFiltering(filter);
    const shown = filtering ? faded(matrix, rows, columns, filter) : matrix;
    const shades = new Shades(kind, most || extentOf(matrix), scale, colorScale, look);
    // The mean of weights that stay and weights that fade would be neither.
    const pyramid = new Pyramid(shown, rows, columns, filtering ? "max" : pool, kind);
    this.#made = made;
    this.#madeOf = attention;
    return {
      attention,
      matrix,
      shown,
      shades,
      tiles: new Tiles(pyramid, shades),
      marginals: marginals === "none" || kind === "scores" ? null : marginalsOf(matrix, rows, columns, marginals),
      numbers: this.numbers,
    };
  }

  #matrixOf(attention: Attention, layer: number, head: HeadChoice): Float32Array {
    return (this.valueWeighted && attention.valueWeighted(layer, head)) || attention.matrix(layer, head);
  }

  /** Lays the parts out where sizes have changed; what was zoomed in to stays in sight. */
  #arrange(attention: Attention): void {
    const { look } = this;
    const room = this.content.clientWidth;
    const density = window.devicePixelRatio || 1;
    const height = this.numberAttribute("max-height", HEIGHT);
    const strips = this.#picture?.marginals !== null;
    const key = JSON.stringify([room, density, height, strips, look.font]);
    if (room === 0 || (this.#layout && this.#madeOf === this.#layoutOf && key === this.#laidOut)) return;
    const context = this.#base.getContext("2d")!;
    context.font = labelFont(look.font);
    const layout = layoutMap(attention, room, height, density, (text) => context.measureText(text).width, strips);
    const before = this.#layout;
    const zoomedIn = before && this.#layoutOf === attention && !isWhole(before.frame, this.#view);
    this.#layout = layout;
    this.#layoutOf = attention;
    this.#laidOut = key;
    this.#view = zoomedIn ? moved(layout.frame, this.#view, 0, 0) : wholeView(layout.frame);
    for (const canvas of [this.#base, this.#overlay]) {
      canvas.width = Math.round(layout.width * density);
      canvas.height = Math.round(layout.height * density);
      canvas.style.width = `${layout.width}px`;
      canvas.style.height = `${layout.height}px`;
    }
    this.#surface.style.width = `${layout.width}px`;
    this.#surface.style.height = `${layout.height}px`;
  }
  #layoutOf: Attention | null = null;

  #inside({ query, key }: Cell): boolean {
    const attention = this.#picture?.attention;
    return (
      attention !== undefined && query < attention.queryLength && key < attention.keyLength && query >= 0 && key >= 0
    );
  }

  #show(view: View | null): void {
    if (!view) return;
    this.#view = view;
    this.#surface.classList.toggle("zoomed", this.#layout !== null && !isWhole(this.#layout.frame, view));
    this.#redraw();
  }

  #redraw(): void {
    this.#frame ||= requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const layout = this.#layout;
    const picture = this.#picture;
    if (!layout || !picture) return;
    const density = this.#base.width / layout.width;
    const complete = drawMap(this.#base.getContext("2d")!, picture, layout, this.#view, this.look, density);
    this.#drawPointer();
    if (!complete) this.#redraw();
  }

  #drawPointer(): void {
    const layout = this.#layout;
    if (!layout || !this.#picture) return;
    const density = this.#base.width / layout.width;
    const context = this.#overlay.getContext("2d")!;
    drawPointer(context, this.#picture.attention, layout, this.#view, this.look, density, this.#cell, this.#locked);
  }

  #detail(): CellDetail | null {
    const picture = this.#picture;
    if (!this.#cell || !picture) return null;
    const { layer, head } = this.selection(picture.attention);
    return detailOf(picture.attention, picture.matrix, layer, head, this.#cell);
  }

  #tell(aloud: boolean): void {
    const picture = this.#picture;
    if (!picture) return;
    const detail = this.#detail();
    showReadout(this.#readout, picture.attention, picture.matrix, detail, this.valueWeighted, this.words);
    if (aloud && detail)
      this.announce(spoken(picture.attention, picture.matrix, detail, this.valueWeighted, this.words));
  }

  #hover(cell: Cell | null): void {
    if (this.#locked || (cell?.query === this.#cell?.query && cell?.key === this.#cell?.key)) return;
    // What the keyboard chose stays when the pointer merely leaves.
    if (!cell && this.#surface.matches(":focus-visible")) return;
    this.#choose(cell, false);
  }

  #choose(cell: Cell | null, aloud: boolean): void {
    this.#cell = cell;
    this.#tell(aloud);
    this.#drawPointer();
    this.emit("attention-hover", this.#detail());
  }

  #press(cell: Cell): void {
    const same = this.#cell?.query === cell.query && this.#cell.key === cell.key;
    this.#locked = !(this.#locked && same);
    this.#choose(cell, true);
    this.emit("attention-select", this.#locked ? this.#detail() : null);
    this.announce(this.#locked ? this.words.locked : this.words.unlocked);
  }

  #release(): void {
    const was = this.#locked;
    this.#locked = false;
    if (was) {
      this.emit("attention-select", null);
      this.announce(this.words.unlocked);
      this.#drawPointer();
    } else this.#choose(null, false);
  }

  #step(rows: number, columns: number): void {
    const attention = this.#picture?.attention;
    if (!attention) return;
    const from = this.#cell ?? { query: rows > 0 ? -1 : 0, key: columns > 0 ? -1 : 0 };
    const within = (at: number, length: number) => Math.max(0, Math.min(length - 1, at));
    this.#goTo({
      query: within(from.query + rows, attention.queryLength),
      key: within(from.key + columns, attention.keyLength),
    });
  }

  #end(axis: "key" | "query", last: boolean): void {
    const attention = this.#picture?.attention;
    if (!attention) return;
    const from = this.#cell ?? { query: 0, key: 0 };
    if (axis === "key") this.#goTo({ ...from, key: last ? attention.keyLength - 1 : 0 });
    else this.#goTo({ ...from, query: last ? attention.queryLength - 1 : 0 });
  }

  #goTo(cell: Cell): void {
    this.#locked = false;
    if (this.#layout) this.#view = revealing(this.#layout.frame, this.#view, cell);
    this.#choose(cell, true);
    this.#redraw();
  }
}
