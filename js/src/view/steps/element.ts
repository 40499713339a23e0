/** <attention-steps>: how weights come about, as four pictures that point at the same cell. */
import { Bar } from "../controls.js";
import type { Attention, HeadChoice } from "../data.js";
import { bdi, h } from "../dom.js";
import type { CellDetail } from "../events.js";
import { formatNumber, formatPercent, formatPrecise } from "../format.js";
import { AttentionMap } from "../map/element.js";
import { csvOfSteps } from "../map/export.js";
import type { Cell } from "../map/viewport.js";
import { pngOfScene, type Scene, svgOfScene } from "../marks.js";
import type { ReadOptions } from "../read.js";
import { TableTwin } from "../table.js";
import { ToolbarElement } from "../toolbar-element.js";
import { type Figure, sceneOf } from "./picture.js";
import { type Engine, readStages, STAGES, type Stage, type Stages } from "./stages.js";
import { STEPS_STYLES } from "./styles.js";

/** Tallest of the four pictures. */
const HEIGHT = 420;

export class AttentionSteps extends ToolbarElement {
  static override observedAttributes = [...ToolbarElement.observedAttributes, "numbers", "max-height"];
  static override styles = STEPS_STYLES;

  readonly #readout = h("div", { part: "readout", class: "readout" });
  readonly #tables = ofStages(() => new TableTwin());
  readonly #bar = new Bar(this, (open) => {
    for (const stage of STAGES) this.#tables[stage].open = open;
    this.requestUpdate();
  });
  readonly #maps: Record<Stage, AttentionMap>;
  readonly #figures: Record<Stage, Figure>;
  #lb: Engine | null = null;
  #stages: Stages | null = null;
  #shown: Stages | null = null;

  constructor() {
    super();
    this.#maps = ofStages((stage) => this.#makeMap(stage));
    this.#figures = ofStages((stage) => ({
      operator: h("div", { class: "operator" }),
      title: h("strong", {}),
      how: h("span", {}),
      map: this.#maps[stage],
    }));
    const line = h("div", { class: "line", part: "steps" });
    for (const stage of STAGES) {
      const { operator, title, how, map } = this.#figures[stage];
      const head = h("div", { class: "head" }, operator, h("figcaption", {}, title, how));
      line.append(h("figure", { part: `step ${stage}` }, head, map));
    }
    const tables = STAGES.map((stage) => this.#tables[stage].element);
    this.content.append(line, h("div", { class: "foot" }, this.#readout, this.#bar.element), ...tables);
  }

  /** What computes the steps from q and k: `await createLookback()`. */
  get lb(): Engine | null {
    return this.#lb;
  }
  set lb(lb: Engine | null) {
    this.#lb = lb;
    this.readAgain();
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
    return this.#maps.weights.cell;
  }

  get locked(): boolean {
    return this.#maps.weights.locked;
  }

  /** Points at a cell of all four without an event; `locked` = it stays. */
  point(cell: Cell | null, locked = false): void {
    for (const stage of STAGES) this.#maps[stage].point(cell, locked);
    this.#tell();
  }

  /** The numbers of all four: a line of keys, then a line per step and query. */
  toCSV(): string {
    const { stages, layer, head } = this.#ready();
    return csvOfSteps(STAGES.map((stage) => [stage, stages[stage], stages[stage].matrix(layer, head)]));
  }

  /** All four as a drawing that stands alone. */
  toSVG(): string {
    return svgOfScene(this.#scene(), this.label ?? STAGES.map((stage) => this.words.steps[stage].title).join(", "));
  }

  /** What is seen. */
  async toPNG(): Promise<Blob> {
    return pngOfScene(this.#scene(), this.#density);
  }

  get #density(): number {
    return Math.max(2, window.devicePixelRatio);
  }

  #scene(): Scene {
    this.#ready();
    const figures = STAGES.map((stage) => this.#figures[stage]);
    return sceneOf(this.content, figures, this.look, this.#density);
  }

  /** Everything that is asked for so far, drawn or not yet. */
  #ready(): { stages: Stages; layer: number; head: HeadChoice } {
    this.flush();
    const attention = this.exported(this.attention);
    return { stages: this.exported(this.#shown), ...this.selection(attention) };
  }

  protected override read(input: unknown, options: ReadOptions): Attention {
    this.#stages = readStages(input, options, this.#lb);
    return this.#stages.weights;
  }

  protected override follow(detail: CellDetail | null, locked: boolean): void {
    const cell = detail && this.attention?.cellOf(detail.queryToken.position, detail.keyToken.position);
    this.point(cell ?? null, locked);
  }

  protected override update(attention: Attention): void {
    const { words } = this;
    const stages = this.#stages;
    if (!stages) return;
    const { layer, head } = this.selection(attention);
    const hide = this.hideSpecial;
    this.#shown = hide ? ofStages((stage) => stages[stage].withoutSpecial()) : stages;
    const height = this.numberAttribute("max-height", HEIGHT);
    for (const stage of STAGES) {
      const map = this.#maps[stage];
      const { title, how } = words.steps[stage];
      if (map.data !== this.#shown[stage]) map.data = this.#shown[stage];
      map.layer = layer;
      map.head = head;
      map.numbers = this.numbers;
      map.colorScale = this.colorScale;
      map.label = title;
      map.setAttribute("max-height", String(height));
      const shown = this.#shown[stage];
      this.#tables[stage].show(shown, shown.matrix(layer, head), words, title);
      const figure = this.#figures[stage];
      figure.title.textContent = title;
      figure.how.textContent = how;
      figure.operator.textContent = this.#operatorOf(stage, attention, layer);
    }
    this.#bar.element.hidden = this.hideToolbar;
    this.#bar.show(words, this.#tables.raw.open);
    this.#tell();
  }

  /** The formula's words: what is done to what the picture before shows. */
  #operatorOf(stage: Stage, attention: Attention, layer: number): string {
    const vectors = attention.vectors(layer, 0);
    const width = vectors?.queries?.width;
    if (stage === "raw") return "Q·Kᵀ";
    if (stage === "masked") return "+ M";
    if (stage === "weights") return "softmax";
    if (!vectors || !width) return "÷ √d";
    return Math.abs(vectors.scale * Math.sqrt(width) - 1) < 1e-6 ? `÷ √${width}` : `× ${formatPrecise(vectors.scale)}`;
  }

  #makeMap(stage: Stage): AttentionMap {
    const map = new AttentionMap();
    map.compact = true;
    map.setAttribute("exportparts", `map: ${stage}-map`);
    for (const name of ["attention-hover", "attention-select"] as const)
      map.addEventListener(name, (event) => {
        event.stopPropagation();
        const { cell, locked } = map;
        for (const other of STAGES) if (other !== stage) this.#maps[other].point(cell, locked);
        this.#tell();
        const released = name === "attention-select" && !locked;
        this.emit(name, released ? null : this.#detail());
      });
    return map;
  }

  #at(stage: Stage, { query, key }: Cell): number {
    const attention = this.#shown![stage];
    const { layer, head } = this.selection(attention);
    return attention.matrix(layer, head)[query * attention.keyLength + key]!;
  }

  #detail(): CellDetail | null {
    const { attention, cell } = this;
    if (!attention || !cell || !this.#shown) return null;
    const { layer, head } = this.selection(attention);
    return {
      layer,
      head,
      ...cell,
      queryToken: attention.queryTokens[cell.query]!,
      keyToken: attention.keyTokens[cell.key]!,
      weight: this.#at("weights", cell),
      product: this.#at("raw", cell),
      score: this.#at("scaled", cell),
    };
  }

  #tell(): void {
    const detail = this.#detail();
    const { words, cell } = this;
    if (!detail || !cell) {
      this.#readout.replaceChildren(h("span", { class: "quiet" }, "softmax(Q·Kᵀ / √d + M)"));
      return;
    }
    const masked = this.#at("masked", cell);
    const hidden = masked === Number.NEGATIVE_INFINITY;
    const values: Record<Stage, string> = {
      raw: `q·k = ${formatNumber(detail.product ?? 0, 3)}`,
      scaled: formatNumber(detail.score ?? 0, 3),
      masked: hidden ? `−∞ (${words.masked})` : `${formatNumber(masked, 3)} (${words.visible})`,
      weights: `${formatPrecise(detail.weight)} (${formatPercent(detail.weight)})`,
    };
    this.#readout.replaceChildren(
      h("span", { class: "pair" }, bdi(detail.queryToken.label), " → ", bdi(detail.keyToken.label)),
      ...STAGES.map((stage) =>
        h(
          "span",
          { class: `value ${stage}` },
          h("span", { class: "quiet" }, words.steps[stage].title),
          ` ${values[stage]}`,
        ),
      ),
    );
  }
}

function ofStages<T>(make: (stage: Stage) => T): Record<Stage, T> {
  return Object.fromEntries(STAGES.map((stage) => [stage, make(stage)])) as Record<Stage, T>;
}
