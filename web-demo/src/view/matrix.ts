/** A matrix on the page: its title, its canvas (pointer and keyboard), and the table that says the same in text. */
import { at } from "../engine/grid";
import { h } from "./dom";
import { formatNumber } from "./format";
import { drawMatrix, type Highlight, labelFont, type MatrixPicture } from "./matrix-draw";
import { type CellPosition, cellAt, layoutMatrix, type MatrixLayout, type MatrixMeasure } from "./matrix-layout";
import type { Palette } from "./palette";

export type Tone = "x" | "w" | "q" | "k" | "v" | "s" | "m" | "a" | "o";

export interface MatrixSpec extends MatrixPicture {
  readonly id: string;
  /** Plain words, for the table and the screen reader. */
  readonly name: string;
  /** The symbol above it, our own markup. */
  readonly symbol: string;
  readonly tone: Tone;
}

export interface MatrixWords {
  role: string;
  label(name: string, rows: number, cols: number): string;
  row(index: number): string;
  column(index: number): string;
}

export interface MatrixEvents {
  point(position: CellPosition | null): void;
  press(position: CellPosition): void;
  step(position: CellPosition): void;
  release(): void;
}

let measuring: CanvasRenderingContext2D | null = null;

function widest(labels: readonly string[], palette: Palette): number {
  measuring ??= document.createElement("canvas").getContext("2d");
  if (!measuring) return 0;
  measuring.font = labelFont(palette);
  let width = 0;
  for (const label of labels) width = Math.max(width, Math.ceil(measuring.measureText(label).width));
  return width;
}

export class MatrixView {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly table: HTMLTableElement;
  readonly #title: HTMLElement;
  readonly #events: MatrixEvents;
  readonly #words: MatrixWords;
  #spec: MatrixSpec;
  #layout: MatrixLayout | null = null;
  #cursor: CellPosition = { row: 0, col: 0 };

  constructor(spec: MatrixSpec, words: MatrixWords, helpId: string, events: MatrixEvents) {
    this.#spec = spec;
    this.#words = words;
    this.#events = events;
    this.#title = h("div", { class: "matrix-title", "aria-hidden": "true" });
    this.canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": words.role,
      "aria-describedby": helpId,
      "data-matrix": spec.id,
    });
    this.table = h("table", { class: "twin", "data-twin": spec.id });
    this.element = h("div", { class: `matrix tone-${spec.tone}` }, this.#title, this.canvas);
    this.#listen();
    this.show(spec);
  }

  show(spec: MatrixSpec): void {
    this.#spec = spec;
    const { rows, cols } = spec.grid;
    this.#title.innerHTML = `${spec.symbol}<span class="matrix-size">${rows}&thinsp;×&thinsp;${cols}</span>`;
    this.canvas.setAttribute("aria-label", this.#words.label(spec.name, rows, cols));
    this.#cursor = { row: Math.min(this.#cursor.row, rows - 1), col: Math.min(this.#cursor.col, cols - 1) };
    this.#fillTable();
  }

  measure(palette: Palette): MatrixMeasure {
    const { grid, rows, cols } = this.#spec;
    return {
      rows: grid.rows,
      cols: grid.cols,
      rowLabel: widest(rows, palette),
      colLabel: widest(cols, palette),
    };
  }

  draw(cell: number, labelRoom: number, highlights: readonly Highlight[], locked: boolean, palette: Palette): void {
    this.#layout = layoutMatrix(this.measure(palette), cell, labelRoom);
    const { left, width, cols } = this.#layout;
    // Over the cells, not over their labels.
    this.#title.style.translate = `${(left - (width - left - cols * cell)) / 2}px`;
    drawMatrix(this.canvas, this.#layout, this.#spec, highlights, locked, palette);
  }

  moveCursor(position: CellPosition): void {
    this.#cursor = position;
  }

  #fillTable(): void {
    const { name, grid, rows, cols } = this.#spec;
    const columnName = (col: number) => cols[col] ?? this.#words.column(col + 1);
    const head = h("tr", {}, h("td"));
    for (let col = 0; col < grid.cols; col++) head.append(h("th", { scope: "col" }, columnName(col)));
    const body = h("tbody");
    for (let row = 0; row < grid.rows; row++) {
      const line = h("tr", {}, h("th", { scope: "row" }, rows[row] ?? this.#words.row(row + 1)));
      for (let col = 0; col < grid.cols; col++) {
        const value = at(grid, row, col);
        line.append(h("td", {}, h("data", { value: String(value) }, formatNumber(value, 3))));
      }
      body.append(line);
    }
    this.table.replaceChildren(h("caption", {}, name), h("thead", {}, head), body);
  }

  #listen(): void {
    const position = (event: MouseEvent): CellPosition | null =>
      this.#layout && cellAt(this.#layout, event.offsetX, event.offsetY);
    this.canvas.addEventListener("pointermove", (event) => {
      const cell = position(event);
      this.canvas.style.cursor = cell ? "pointer" : "default";
      if (event.pointerType !== "touch") this.#events.point(cell);
    });
    this.canvas.addEventListener("pointerleave", () => this.#events.point(null));
    this.canvas.addEventListener("click", (event) => {
      const cell = position(event);
      if (!cell) return;
      this.#cursor = cell;
      this.#events.press(cell);
    });
    this.canvas.addEventListener("focus", () => {
      if (this.canvas.matches(":focus-visible")) this.#events.step(this.#cursor);
    });
    this.canvas.addEventListener("blur", () => this.#events.point(null));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { rows, cols } = this.#spec.grid;
    const { row, col } = this.#cursor;
    const moves: Record<string, CellPosition> = {
      ArrowUp: { row: Math.max(0, row - 1), col },
      ArrowDown: { row: Math.min(rows - 1, row + 1), col },
      ArrowLeft: { row, col: Math.max(0, col - 1) },
      ArrowRight: { row, col: Math.min(cols - 1, col + 1) },
      Home: { row, col: 0 },
      End: { row, col: cols - 1 },
      PageUp: { row: 0, col },
      PageDown: { row: rows - 1, col },
    };
    const next = moves[event.key];
    if (next) {
      this.#cursor = next;
      this.#events.step(next);
    } else if (event.key === "Enter" || event.key === " ") this.#events.press(this.#cursor);
    else if (event.key === "Escape") this.#events.release();
    else return;
    event.preventDefault();
  }
}
