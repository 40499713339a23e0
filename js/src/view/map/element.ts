/** <attention-map>: the matrix of one head. */
import type { Attention } from "../data.js";
import { h } from "../dom.js";
import type { CellDetail } from "../events.js";
import { pngOf } from "../marks.js";
import { saveFile } from "../save.js";
import { ScaledElement } from "../scaled.js";
import { TableTwin } from "../table.js";
import { headName } from "../words.js";
import { isHatched } from "./draw.js";
import { csvOf, type ExportSource, htmlOf, svgOf } from "./export.js";
import { MARGINALS, type MarginalKind } from "./filter.js";
import { boldFont, layoutMap } from "./layout.js";
import { makePicture, type Picture, type PictureSettings } from "./picture.js";
import { POOLINGS, type Pooling } from "./pyramid.js";
import { detailOf, showReadout, spoken } from "./readout.js";
import { Stage } from "./stage.js";
import { MAP_STYLES } from "./styles.js";
import { pictureOfWhole } from "./tiles.js";
import { type SaveFormat, showLegend, Toolbar } from "./toolbar.js";
import type { Cell } from "./viewport.js";

/** Tallest picture, where no attribute says another. */
const HEIGHT = 640;
/** Width of an exported picture. */
const EXPORT_ROOM = 960;

export class AttentionMap extends ScaledElement {
  static override observedAttributes = [
    ...ScaledElement.observedAttributes,
    "pool",
    "marginals",
    "threshold",
    "top-k",
    "max",
    "max-height",
    "numbers",
    "compact",
  ];
  static override styles = MAP_STYLES;

  readonly #stage = new Stage({ pointed: (byKey) => this.#pointed(byKey), locked: () => this.#lockChanged() });
  readonly #readout = h("div", { part: "readout", class: "readout" });
  readonly #legend = h("div", { part: "legend", class: "legend" });
  readonly #table = new TableTwin();
  readonly #toolbar = new Toolbar({
    choose: (layer, head) => this.chooseHead(layer, head),
    zoom: (factor) => this.#stage.zoom(factor),
    whole: () => this.#stage.whole(),
    scale: (scale) => {
      this.scale = scale;
    },
    numbers: (on) => {
      this.numbers = on;
    },
    table: (open) => {
      this.#table.open = open;
      this.requestUpdate();
    },
    save: (format) => void this.#save(format),
    copyHtml: () => void this.#copyHtml(),
  });
  #picture: Picture | null = null;
  #made = "";

  constructor() {
    super();
    const foot = h("div", { class: "foot" }, this.#readout, this.#legend);
    this.content.append(this.#toolbar.element, this.#stage.surface, foot, this.#table.element);
  }

  /** What many cells in one pixel look like: their strongest ('max') or their mean. */
  get pool(): Pooling {
    return this.choice("pool", this.getAttribute("pool") ?? "max", POOLINGS);
  }
  set pool(pooling: Pooling) {
    this.setAttribute("pool", pooling);
  }

  /** Beside the rows and below the columns: the mean of each, the sum, or nothing. */
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

  /** The number with the strongest colour; 0 = the largest of the matrix. */
  get max(): number {
    return this.numberAttribute("max", 0);
  }
  set max(most: number) {
    this.setAttribute("max", String(most));
  }

  /** Numbers in the cells that have room for them. */
  get numbers(): boolean {
    return this.hasAttribute("numbers");
  }
  set numbers(numbers: boolean) {
    this.toggleAttribute("numbers", numbers);
  }

  /** The picture alone: no toolbar, no line below. */
  get compact(): boolean {
    return this.hasAttribute("compact");
  }
  set compact(compact: boolean) {
    this.toggleAttribute("compact", compact);
  }

  /** The cell that is pointed at; null = none. */
  get cell(): Cell | null {
    return this.#stage.cell;
  }

  /** Whether it stays when the pointer leaves. */
  get locked(): boolean {
    return this.#stage.isLocked;
  }

  /** Where in the element's picture the matrix is, in CSS pixels from the picture's corner. */
  get drawnBox(): { x: number; y: number; width: number; height: number } {
    const { left = 0, top = 0, frame } = this.#stage.layout ?? {};
    return { x: left, y: top, width: frame?.width ?? 0, height: frame?.height ?? 0 };
  }

  /** Points at a cell without an event, as what follows another picture does; `locked` = it stays. */
  point(cell: Cell | null, locked = false): void {
    this.#stage.point(cell, locked);
    this.#tell();
  }

  protected override follow(detail: CellDetail | null, locked: boolean): void {
    const { attention } = this;
    const cell = attention && detail && attention.cellOf(detail.queryToken.position, detail.keyToken.position);
    this.point(cell ?? null, locked);
  }

  /** Shows everything. */
  zoomToFit(): void {
    this.#stage.whole();
  }

  /** Shows `cell` pixels per cell from a row and a column on. */
  zoomTo(cell: number, { query, key }: Cell): void {
    const aspect = this.#stage.layout?.frame.aspect ?? 1;
    this.#stage.view = { cell, x: key * cell, y: query * cell * aspect };
  }

  /** The head's numbers: keys in the first line, then a line per query. */
  toCSV(): string {
    const { attention, matrix } = this.#exportSource();
    return csvOf(attention, matrix);
  }

  /** What is seen, at so many pixels per CSS pixel. */
  async toPNG({ density = 2 }: { density?: number } = {}): Promise<Blob> {
    return pngOf(this.toCanvas({ density }));
  }

  /** The same as a canvas, for a picture that it becomes a part of. */
  toCanvas({ density = 2 }: { density?: number } = {}): HTMLCanvasElement {
    this.#exportSource();
    return this.#stage.canvas(density);
  }

  /** The whole matrix as a drawing that stands alone; `pattern` names its hatching, which must differ where drawings share a page. */
  toSVG({ pattern = "masked" }: { pattern?: string } = {}): string {
    const source = { ...this.#exportSource(), pattern };
    const context = h("canvas").getContext("2d")!;
    context.font = boldFont(source.look.font);
    const measure = (text: string) => context.measureText(text).width;
    const layout = layoutMap(source.attention, EXPORT_ROOM, EXPORT_ROOM, 1, measure, source.bars !== null);
    return svgOf(source, layout, () => pictureOfWhole(this.#picture!.tiles));
  }

  /** Markup that stands alone: a table with coloured cells, or, where it would be too large, the drawing. */
  toHTML(): string {
    return htmlOf(this.#exportSource(), () => this.toSVG());
  }

  protected override update(attention: Attention): void {
    const { words, look } = this;
    const settings: PictureSettings = {
      ...this.selection(attention),
      look,
      pool: this.pool,
      scale: this.scale,
      marginals: this.compact ? "none" : this.marginals,
      colorScale: this.colorScale,
      valueWeighted: this.valueWeighted,
      filter: { threshold: this.threshold, topK: this.topK },
      max: this.max,
    };
    // Made anew only where something that it depends on has changed.
    const made = JSON.stringify(settings);
    if (this.#picture?.attention !== attention || this.#made !== made) this.#picture = makePicture(attention, settings);
    this.#made = made;
    const picture = this.#picture!;
    this.#toolbar.element.hidden = this.hideToolbar || this.compact;
    const { layer, head, scale } = settings;
    if (!this.#toolbar.element.hidden)
      this.#toolbar.show({ attention, layer, head, scale, numbers: this.numbers, table: this.#table.open }, words);
    this.#readout.parentElement!.hidden = this.compact;
    this.#table.show(attention, picture.matrix, words, this.#title());
    const { surface } = this.#stage;
    surface.setAttribute("aria-roledescription", words.map);
    surface.setAttribute(
      "aria-label",
      `${this.#title()}: ${words.queries(attention.queryLength)}, ${words.keys(attention.keyLength)}`,
    );
    surface.setAttribute("aria-description", words.help);
    this.#stage.show(picture, {
      look,
      room: this.content.clientWidth,
      height: this.numberAttribute("max-height", HEIGHT),
      density: window.devicePixelRatio || 1,
      numbers: this.numbers,
    });
    const bars = picture.bars && settings.marginals !== "none" ? [words.bars(words[settings.marginals])] : [];
    const more = [...(this.valueWeighted ? [words.weighted] : []), ...bars];
    showLegend(this.#legend, picture.shades, this.#maskedLook(picture), words, more);
    this.#tell();
  }

  /** As the whole map shows it. */
  #maskedLook({ isMasked }: Picture): "none" | "plain" | "hatched" {
    const frame = this.#stage.layout?.frame;
    if (!isMasked) return "none";
    return frame && isHatched(frame, frame.fit) ? "hatched" : "plain";
  }

  #title(): string {
    const { words, attention } = this;
    if (this.label !== null) return this.label;
    if (!attention || (attention.layers === 1 && attention.heads === 1)) return words.map;
    const { layer, head } = this.selection(attention);
    return `${words.map}, ${words.layer} ${attention.layerNumbers[layer]}, ${words.head} ${headName(attention, head, words)}`;
  }

  /** Everything that is asked for so far, drawn or not yet. */
  #exportSource(): ExportSource {
    this.flush();
    const picture = this.exported(this.attention && this.#picture);
    return { ...picture, look: this.look, title: this.#title(), numbers: this.numbers, pattern: "masked" };
  }

  #detail(): CellDetail | null {
    const picture = this.#picture;
    const { cell } = this.#stage;
    if (!cell || !picture) return null;
    const { layer, head } = this.selection(picture.attention);
    return detailOf(picture.attention, picture.matrix, layer, head, cell);
  }

  #tell(): CellDetail | null {
    const picture = this.#picture;
    if (!picture) return null;
    const detail = this.#detail();
    showReadout(this.#readout, picture.attention, picture.matrix, detail, this.valueWeighted, this.words);
    return detail;
  }

  #pointed(byKey: boolean): void {
    const detail = this.#tell();
    const picture = this.#picture;
    if (byKey && detail && picture)
      this.announce(spoken(picture.attention, picture.matrix, detail, this.valueWeighted, this.words));
    this.emit("attention-hover", detail);
  }

  #lockChanged(): void {
    this.emit("attention-select", this.locked ? this.#detail() : null);
    this.announce(this.locked ? this.words.locked : this.words.unlocked);
  }

  async #save(format: SaveFormat): Promise<void> {
    const blob =
      format === "png"
        ? await this.toPNG()
        : format === "svg"
          ? new Blob([this.toSVG()], { type: "image/svg+xml" })
          : new Blob([this.toCSV()], { type: "text/csv" });
    saveFile(blob, `attention.${format}`);
  }

  async #copyHtml(): Promise<void> {
    const html = this.toHTML();
    // As markup for what takes markup, and as its text for editors of code.
    const types = {
      "text/html": new Blob([html], { type: "text/html" }),
      "text/plain": new Blob([html], { type: "text/plain" }),
    };
    try {
      await navigator.clipboard.write([new ClipboardItem(types)]);
    } catch {
      // A page without the right to write there, or without https, has a file instead.
      saveFile(types["text/html"], "attention.html");
      return;
    }
    this.announce(this.words.copied);
  }
}
