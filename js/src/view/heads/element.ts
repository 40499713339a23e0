/** <attention-heads>: all layers and heads at a glance, and how the heads of one layer look from token to token. */

import { Bar } from "../controls.js";
import type { Attention, HeadChoice } from "../data.js";
import { h } from "../dom.js";
import type { CellDetail } from "../events.js";
import { formatNumber, formatPercent, formatPrecise } from "../format.js";
import { matrixOf, strongest, sumsOf } from "../looks.js";
import { csvOf } from "../map/export.js";
import { detailOf } from "../map/readout.js";
import { type Mark, pngOfScene, type Scene, svgOfScene } from "../marks.js";
import { ScaledElement } from "../scaled.js";
import { TableTwin } from "../table.js";
import { headName, quote } from "../words.js";
import { Columns } from "./columns.js";
import { Overview } from "./overview.js";
import { headColours } from "./palette.js";
import { HEADS_STYLES } from "./styles.js";
import { Tiles } from "./tiles.js";

const TALLEST = 480;
export const PARTS = ["all", "overview", "tokens"] as const;
/** What is shown: the overview of all heads, the tokens of one layer, or both. */
export type HeadsView = (typeof PARTS)[number];

export class AttentionHeads extends ScaledElement {
  static override observedAttributes = [...ScaledElement.observedAttributes, "view", "max-height"];
  static override styles = HEADS_STYLES;

  readonly #overview = new Overview({
    choose: (layer, head, more) => this.#pick(layer, head, more),
  });
  readonly #tiles = new Tiles((heads) => this.#turn(this.layer, heads));
  readonly #columns = new Columns({
    point: (query, byKey) => this.#point(query, byKey),
    press: (query, more) => this.#press(query, more),
    release: () => this.#release(),
  });
  readonly #readout = h("div", { part: "readout", class: "readout" });
  readonly #table = new TableTwin();
  readonly #bar = new Bar(this, (open) => {
    this.#table.open = open;
    this.requestUpdate();
  });
  #attention: Attention | null = null;
  #chosen: readonly number[] = [];
  #at: number | null = null;

  constructor() {
    super();
    const foot = h("div", { class: "foot" }, this.#readout, this.#bar.element);
    this.content.append(this.#overview.element, this.#tiles.element, this.#columns.element, foot, this.#table.element);
  }

  /** Default: all heads of the layer. */
  override get head(): HeadChoice {
    return this.hasAttribute("head") ? super.head : "mean";
  }
  override set head(head: HeadChoice) {
    super.head = head;
  }

  get view(): HeadsView {
    return this.choice("view", this.getAttribute("view") ?? "all", PARTS);
  }
  set view(view: HeadsView) {
    this.setAttribute("view", view);
  }

  /** The queries whose looks are added up. */
  get chosen(): readonly number[] {
    return this.#chosen;
  }
  set chosen(queries: readonly number[]) {
    this.#chosen = queries;
    this.requestUpdate();
  }

  /** What the followed queries look at: the mean of the heads that are on of the sum of these queries, by key. */
  get amounts(): Float32Array | null {
    const attention = this.#attention;
    const queries = this.#followed();
    if (!attention || queries.length === 0) return null;
    return sumsOf(attention, this.#matrix(attention), "from", queries);
  }

  /** The mean of the heads that are on: keys in the first line, then a line per query. */
  toCSV(): string {
    const attention = this.#ready();
    return csvOf(attention, this.#matrix(attention));
  }

  toSVG(): string {
    return svgOfScene(this.#scene(), this.#title(this.#ready()));
  }

  async toPNG(): Promise<Blob> {
    return pngOfScene(this.#scene(), Math.max(2, window.devicePixelRatio));
  }

  protected override update(attention: Attention): void {
    const { layer, head } = this.selection(attention);
    const { words, look, view, scale, colorScale, valueWeighted } = this;
    if (this.#attention !== attention) {
      this.#chosen = [];
      this.#at = null;
    }
    this.#attention = attention;
    const on = attention.headList(head);
    const colours = headColours(attention.heads, look.scheme);
    this.#chosen = this.#chosen.filter((query) => query >= 0 && query < attention.queryLength);
    this.#overview.element.hidden = view === "tokens" || attention.layers * attention.heads === 1;
    this.#tiles.element.hidden = view === "overview" || attention.heads === 1;
    this.#columns.element.hidden = view === "overview";
    this.#readout.hidden = view === "overview";
    if (!this.#overview.element.hidden) {
      const settings = { layer, heads: on, scale, colors: colorScale, look, valueWeighted };
      this.#overview.show(attention, settings, this.content.clientWidth, words);
    }
    this.#tiles.show(attention, on, colours, words);
    this.#bar.element.hidden = this.hideToolbar;
    this.#bar.show(words, this.#table.open);
    if (this.#table.open) this.#table.show(attention, this.#matrix(attention), words, this.#title(attention));
    if (this.label) this.content.setAttribute("aria-label", this.label);
    this.#showTokens();
  }

  protected override follow(detail: CellDetail | null, locked: boolean): void {
    const query = this.#attention?.queryTokens.findIndex(({ position }) => position === detail?.queryToken.position);
    this.#at = query === undefined || query < 0 ? null : query;
    this.#chosen = locked && this.#at !== null ? [this.#at] : [];
    if (this.#at !== null) this.#columns.reveal(this.#at);
    this.#showTokens();
  }

  #ready(): Attention {
    this.flush();
    this.#overview.finish();
    return this.exported(this.#attention);
  }

  #title(attention: Attention): string {
    const { layer, head } = this.selection(attention);
    const { words } = this;
    return `${words.layer} ${attention.layerNumbers[layer]}, ${words.head} ${headName(attention, head, words)}`;
  }

  #matrix(attention: Attention): Float32Array {
    const { layer, head } = this.selection(attention);
    return matrixOf(attention, layer, head, this.valueWeighted);
  }

  #followed(): readonly number[] {
    return this.#chosen.length > 0 ? this.#chosen : this.#at === null ? [] : [this.#at];
  }

  #showTokens(): void {
    const attention = this.#attention;
    if (!attention || this.#columns.element.hidden) return;
    const { layer, head } = this.selection(attention);
    const { look, words, valueWeighted } = this;
    const colours = headColours(attention.heads, look.scheme);
    const on = attention.headList(head);
    const heads = on.map((each) => ({
      matrix: matrixOf(attention, layer, each, valueWeighted),
      colour: colours[each] ?? "",
    }));
    const amounts = this.amounts;
    const state = {
      attention,
      heads,
      chosen: this.#chosen,
      at: this.#at,
      amount: amounts && ((key: number) => this.#amount(attention, amounts[key]!)),
      ofOne: attention.kind === "weights" && !valueWeighted,
      look,
      tallest: this.numberAttribute("max-height", TALLEST),
    };
    this.#columns.show(state, words);
    this.#showReadout(attention, amounts);
  }

  /** Only the looks of one query are shares of a whole. */
  #amount(attention: Attention, amount: number): string {
    if (attention.kind === "scores") return formatNumber(amount, 2);
    if (amount === 0) return "";
    return this.valueWeighted || this.#followed().length > 1 || amount > 1
      ? formatPrecise(amount)
      : formatPercent(amount);
  }

  #showReadout(attention: Attention, amounts: Float32Array | null): void {
    const { words } = this;
    if (!amounts) {
      this.#readout.replaceChildren(h("span", { class: "quiet" }, words.chooseTokens));
      return;
    }
    this.#readout.replaceChildren(
      h("span", { class: "pair" }, this.#sentence(attention, amounts)),
      h("span", { class: "quiet" }, this.#title(attention)),
    );
  }

  #sentence(attention: Attention, amounts: Float32Array): string {
    const { words } = this;
    const names = this.#followed().map((query) => quote(attention.queryTokens[query]?.label ?? ""));
    const found = strongest(amounts, { count: 3 }).map(
      (key) => `${quote(attention.keyTokens[key]?.label ?? "")} ${this.#amount(attention, amounts[key]!)}`,
    );
    return words.lookTo(names.join(words.and), found.join(words.and));
  }

  /** A thumbnail was chosen: alone, or beside those of its layer. */
  #pick(layer: number, head: number, more: boolean): void {
    const attention = this.#attention;
    if (!attention) return;
    const on = layer === this.layer && this.hasAttribute("head") ? attention.headList(this.head) : [];
    const kept = on.filter((each) => each !== head);
    this.#turn(layer, !more ? [head] : kept.length === on.length || kept.length === 0 ? [...kept, head] : kept);
  }

  #turn(layer: number, heads: readonly number[]): void {
    const attention = this.#attention;
    if (!attention) return;
    const sorted = [...heads].sort((a, b) => a - b);
    const head =
      sorted.length === attention.heads && sorted.length > 1 ? "mean" : sorted.length === 1 ? sorted[0]! : sorted;
    this.chooseHead(layer, head);
    this.announce(this.#title(attention));
  }

  /** The pair of the query that was chosen last and the key that it looks at most. */
  #detail(): CellDetail | null {
    const attention = this.#attention;
    const amounts = this.amounts;
    const query = this.#followed().at(-1);
    if (!attention || !amounts || query === undefined) return null;
    const { layer, head } = this.selection(attention);
    const key = strongest(amounts, { count: 1 })[0] ?? 0;
    return detailOf(attention, this.#matrix(attention), layer, head, { query, key });
  }

  #point(query: number | null, byKey: boolean): void {
    this.#at = query;
    this.#showTokens();
    const { amounts } = this;
    if (byKey && amounts && this.#attention) this.announce(this.#sentence(this.#attention, amounts));
    if (this.#chosen.length === 0) this.emit("attention-hover", this.#detail());
  }

  #press(query: number, more: boolean): void {
    const kept = this.#chosen.filter((each) => each !== query);
    const had = kept.length < this.#chosen.length;
    this.#chosen = had ? kept : more ? [...this.#chosen, query] : [query];
    this.#at = query;
    this.#showTokens();
    const { amounts } = this;
    if (amounts && this.#attention) this.announce(this.#sentence(this.#attention, amounts));
    this.emit("attention-select", this.#chosen.length > 0 ? this.#detail() : null);
  }

  #release(): void {
    const had = this.#chosen.length > 0;
    this.#chosen = [];
    this.#at = null;
    this.#showTokens();
    if (had) this.announce(this.words.unlocked);
    this.emit(had ? "attention-select" : "attention-hover", null);
  }

  /** What is seen of it, one part below the other. */
  #scene(): Scene {
    const attention = this.#ready();
    const { look, words } = this;
    const origin = this.content.getBoundingClientRect();
    const boxOf = (element: Element) => {
      const { left, top, width, height } = element.getBoundingClientRect();
      return { x: left - origin.left, y: top - origin.top, width, height };
    };
    const { layer, head } = this.selection(attention);
    const on = attention.headList(head);
    const marks: Mark[] = this.#overview.element.hidden
      ? []
      : [
          ...this.#overview.canvases.map((image): Mark => ({ is: "image", image, ...boxOf(image) })),
          ...this.#overview.cells.flatMap((row, l) =>
            row.map((cell, each): Mark => {
              const stroke = l === layer && on.includes(each) ? look.accent : look.line;
              return { is: "rect", ...boxOf(cell), fill: look.paper, opacity: 0, stroke };
            }),
          ),
        ];
    for (const name of this.#overview.element.querySelectorAll(".name")) {
      const { x, y, width, height } = boxOf(name);
      const text = name.querySelector(".visually-hidden") ? "" : (name.textContent ?? "");
      marks.push({
        is: "text",
        text,
        x: x + width / 2,
        y: y + height / 2,
        align: "center",
        fill: look.muted,
        size: 11,
      });
    }
    const columns = boxOf(this.#columns.element);
    const moved = (mark: Mark): Mark =>
      mark.is === "curve"
        ? {
            ...mark,
            points: mark.points.map(
              (value, i) => value + (i % 2 ? columns.y : columns.x),
            ) as unknown as typeof mark.points,
          }
        : { ...mark, x: mark.x + columns.x, y: mark.y + columns.y };
    if (!this.#columns.element.hidden) {
      const title = {
        is: "text" as const,
        text: `${words.layer} ${attention.layerNumbers[layer]}`,
        fill: look.muted,
        size: 13,
      };
      const tiles = boxOf(this.#tiles.element);
      marks.push({ ...title, x: tiles.x + tiles.width, y: tiles.y + tiles.height / 2, align: "right" });
      marks.push(...this.#tileMarks(boxOf), ...this.#columns.marks().map(moved));
    }
    return { width: origin.width, height: origin.height, paper: look.paper, font: look.font, marks };
  }

  #tileMarks(boxOf: (element: Element) => { x: number; y: number; width: number; height: number }): Mark[] {
    if (this.#tiles.element.hidden) return [];
    return [...this.#tiles.element.querySelectorAll("button")].flatMap((tile): Mark[] => {
      const box = boxOf(tile);
      const { backgroundColor, borderTopColor, color } = getComputedStyle(tile);
      const on = tile.getAttribute("aria-pressed") === "true";
      const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
      return [
        { is: "rect", ...box, radius: 6, fill: on ? backgroundColor : this.look.paper, stroke: borderTopColor },
        { is: "text", text: tile.textContent ?? "", ...middle, align: "center", fill: color, size: 12, weight: 650 },
      ];
    });
  }
}
