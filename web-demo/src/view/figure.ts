/** Several matrices in one line of mathematics, and beneath them the calculation behind the cell that is pointed at. */
import { h } from "./dom";
import { type Explanation, showExplanation } from "./inspector";
import { type MatrixSpec, MatrixView, type MatrixWords } from "./matrix";
import type { Highlight } from "./matrix-draw";
import { type CellPosition, fitMatrices, labelHeight } from "./matrix-layout";
import type { Palette } from "./palette";

export interface CellRef extends CellPosition {
  readonly matrix: string;
}

/** `room`: width of an operator that is wider than a sign, px. */
export type FigureItem = MatrixSpec | { readonly operator: string; readonly room?: number };

export interface FigureModel {
  readonly items: readonly FigureItem[];
  /** What is explained while nothing is pointed at. */
  readonly initial: CellRef;
  readonly explain: (cell: CellRef) => Explanation;
  /** Largest cell wanted, px. */
  readonly cell?: number;
}

export interface FigureWords extends MatrixWords {
  help: string;
  locked: string;
  unlocked: string;
  showTables: string;
  hideTables: string;
}

export interface FigureContext {
  readonly words: FigureWords;
  readonly palette: () => Palette;
  /** Speaks through the page's live region. */
  readonly announce: (text: string) => void;
}

const OPERATOR_ROOM = 58;
/** As figures.css has it. */
const EMPTY_ROOM = 40;
let figures = 0;

export class FigureView {
  readonly element: HTMLElement;
  readonly #stage = h("div", { class: "stage" });
  readonly #inspector = h("div", { class: "inspector" });
  readonly #lock = h("p", { class: "lock" });
  readonly #tables = h("div", { class: "twins" });
  readonly #context: FigureContext;
  readonly #helpId = `figure-help-${++figures}`;
  readonly #views = new Map<string, MatrixView>();
  #model: FigureModel | null = null;
  #active: CellRef | null = null;
  #locked = false;
  #width = 0;

  constructor(caption: string, context: FigureContext) {
    this.#context = context;
    const { words } = context;
    const toggle = h("button", { type: "button", class: "quiet", "aria-expanded": "false" }, words.showTables);
    toggle.addEventListener("click", () => {
      const open = this.#tables.classList.toggle("open");
      toggle.setAttribute("aria-expanded", String(open));
      toggle.textContent = open ? words.hideTables : words.showTables;
    });
    this.element = h(
      "figure",
      {},
      this.#stage,
      this.#inspector,
      h("div", { class: "figure-foot" }, this.#lock, toggle),
      this.#tables,
      h("p", { class: "visually-hidden", id: this.#helpId }, words.help),
      h("figcaption", { html: caption }),
    );
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry?.contentRect.width ?? 0);
      if (width === this.#width || width === 0) return;
      this.#width = width;
      this.draw();
    }).observe(this.#stage);
  }

  show(model: FigureModel): void {
    this.#model = model;
    const wanted = model.items.filter((item) => "id" in item);
    const ids = new Set(wanted.map((spec) => spec.id));
    if (wanted.length !== this.#views.size || wanted.some((spec) => !this.#views.has(spec.id))) this.#rebuild(model);
    else for (const spec of wanted) this.#views.get(spec.id)?.show(spec);
    const active = this.#active;
    const grid = wanted.find((spec) => spec.id === active?.matrix)?.grid;
    if (!active || !grid || !ids.has(active.matrix) || active.row >= grid.rows || active.col >= grid.cols) {
      this.#active = null;
      this.#locked = false;
    }
    this.draw();
  }

  draw(): void {
    const model = this.#model;
    // The first time, the observer has not spoken yet, and what is below must not jump when it does.
    this.#width ||= this.#stage.clientWidth;
    if (!model || this.#width === 0) return;
    const palette = this.#context.palette();
    const cell = this.#active ?? model.initial;
    const explanation = model.explain(cell);
    const views = [...this.#views];
    const measures = views.map(([, view]) => view.measure(palette));
    const rooms = model.items.flatMap((item, index) => {
      if (!("id" in item)) return [];
      const before = model.items[index - 1];
      return [before && !("id" in before) ? (before.room ?? (before.operator === "" ? EMPTY_ROOM : OPERATOR_ROOM)) : 0];
    });
    const { cell: size, stacked } = fitMatrices(measures, this.#width, rooms, model.cell);
    this.#stage.classList.toggle("stacked", stacked);
    // Neighbours of one height stand on one line, whether or not they have column labels.
    const labelRooms = measures.map((own) =>
      stacked
        ? 0
        : Math.max(...measures.filter((other) => other.rows === own.rows).map((other) => labelHeight(other, size))),
    );
    views.forEach(([id, view], index) => {
      const links: Highlight[] = explanation.links.filter((link) => link.matrix === id);
      if (cell.matrix === id) links.push({ row: cell.row, col: cell.col });
      view.draw(size, labelRooms[index] ?? 0, links, this.#locked, palette);
    });
    showExplanation(this.#inspector, explanation);
    this.#lock.textContent = this.#locked ? this.#context.words.locked : this.#context.words.unlocked;
    this.element.classList.toggle("is-locked", this.#locked);
    this.element.classList.toggle("is-active", this.#active !== null);
  }

  #rebuild(model: FigureModel): void {
    this.#views.clear();
    this.#stage.replaceChildren();
    this.#tables.replaceChildren();
    let operator: Exclude<FigureItem, MatrixSpec> | null = null;
    for (const item of model.items) {
      if (!("id" in item)) {
        operator = item;
        continue;
      }
      const view = new MatrixView(item, this.#context.words, this.#helpId, {
        point: (position) => this.#point(item.id, position),
        press: (position) => this.#press({ matrix: item.id, ...position }),
        step: (position) => this.#step({ matrix: item.id, ...position }),
        release: () => this.#release(),
      });
      this.#views.set(item.id, view);
      // An operator and what it acts on wrap to the next line together.
      const sign = operator && h("span", { class: "operator", "aria-hidden": "true", html: operator.operator });
      if (operator?.room) sign?.style.setProperty("--room", `${operator.room}px`);
      this.#stage.append(h("div", { class: "term" }, sign, view.element));
      this.#tables.append(view.table);
      operator = null;
    }
  }

  #point(matrix: string, position: CellPosition | null): void {
    if (this.#locked) return;
    const active = this.#active;
    if (!position) {
      if (active?.matrix !== matrix) return;
      // What the keyboard chose stays; what the pointer touched goes when it leaves.
      if (this.#views.get(matrix)?.canvas.matches(":focus-visible")) return;
      this.#active = null;
      this.draw();
      return;
    }
    if (active?.matrix === matrix && active.row === position.row && active.col === position.col) return;
    this.#choose({ matrix, ...position });
  }

  #press(cell: CellRef): void {
    const same = this.#active?.matrix === cell.matrix && this.#active.row === cell.row && this.#active.col === cell.col;
    this.#locked = !(this.#locked && same);
    this.#choose(cell);
  }

  #step(cell: CellRef): void {
    this.#locked = false;
    this.#choose(cell);
  }

  #release(): void {
    this.#locked = false;
    this.draw();
  }

  #choose(cell: CellRef): void {
    this.#active = cell;
    this.#views.get(cell.matrix)?.moveCursor(cell);
    this.draw();
    if (this.#model) this.#context.announce(this.#model.explain(cell).spoken);
  }
}
