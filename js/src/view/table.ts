/** A matrix as a table, for those who hear it and those who want its numbers. Large ones are shown a part at a time. */
import type { Attention } from "./data.js";
import { bdi, h } from "./dom.js";
import { formatNumber, formatPrecise } from "./format.js";
import type { Words } from "./words.js";

/** So many cells are shown whole. */
const WHOLE = 1024;
const ROWS = 32;
const COLUMNS = 16;

export class TableTwin {
  readonly element = h("div", { part: "table", class: "twin", tabindex: "0", role: "region", hidden: true });
  #first = { row: 0, column: 0 };
  #shown: { attention: Attention; matrix: Float32Array; words: Words; title: string } | null = null;
  #made = "";

  get open(): boolean {
    return !this.element.hidden;
  }
  set open(open: boolean) {
    this.element.hidden = !open;
    this.#made = "";
    this.#draw();
  }

  show(attention: Attention, matrix: Float32Array, words: Words, title: string): void {
    if (this.#shown?.attention !== attention) this.#first = { row: 0, column: 0 };
    if (this.#shown?.matrix !== matrix || this.#shown.words !== words || this.#shown.title !== title) this.#made = "";
    this.#shown = { attention, matrix, words, title };
    this.element.setAttribute("aria-label", title);
    this.#draw();
  }

  /** Nothing is made while the table is closed. */
  #draw(): void {
    if (!this.#shown || !this.open) return;
    const { attention, matrix, words, title } = this.#shown;
    const { queryLength: rows, keyLength: columns } = attention;
    const whole = rows * columns <= WHOLE;
    const row = whole ? 0 : Math.max(0, Math.min(this.#first.row, rows - ROWS));
    const column = whole ? 0 : Math.max(0, Math.min(this.#first.column, columns - COLUMNS));
    this.#first = { row, column };
    const made = `${row} ${column}`;
    if (made === this.#made) return;
    this.#made = made;
    const lastRow = whole ? rows : Math.min(rows, row + ROWS);
    const lastColumn = whole ? columns : Math.min(columns, column + COLUMNS);
    const range = (from: number, to: number) => words.range(String(from), String(to - 1));
    const part = words.tablePart(range(row, lastRow), range(column, lastColumn));
    const table = h(
      "table",
      {},
      h("caption", {}, `${title} · ${part}`),
      h("thead", {}, headOf(attention, column, lastColumn, words)),
      h(
        "tbody",
        {},
        ...places(row, lastRow).map((query) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, bdi(attention.queryTokens[query]?.label ?? "")),
            ...places(column, lastColumn).map((key) => cellOf(matrix[query * columns + key]!, attention)),
          ),
        ),
      ),
    );
    this.element.replaceChildren(...(whole ? [] : [this.#turner(words, rows, columns)]), table);
  }

  #turner(words: Words, rows: number, columns: number): HTMLElement {
    const button = (label: string, sign: string, down: number, right: number) => {
      const { row, column } = this.#first;
      const gone =
        (down < 0 && row === 0) ||
        (right < 0 && column === 0) ||
        (down > 0 && row >= rows - ROWS) ||
        (right > 0 && column >= columns - COLUMNS);
      const turn = () => {
        this.#first = { row: row + down * ROWS, column: column + right * COLUMNS };
        this.#draw();
        this.element.querySelector<HTMLElement>(`[aria-label="${label}"]`)?.focus();
      };
      return h(
        "button",
        {
          type: "button",
          "aria-label": label,
          title: label,
          "aria-disabled": String(gone),
          onclick: () => gone || turn(),
        },
        sign,
      );
    };
    return h(
      "div",
      { class: "turner" },
      button(words.earlierRows, "↑", -1, 0),
      button(words.laterRows, "↓", 1, 0),
      button(words.earlierColumns, "←", 0, -1),
      button(words.laterColumns, "→", 0, 1),
    );
  }
}

const places = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

function headOf(attention: Attention, from: number, to: number, words: Words): HTMLElement {
  return h(
    "tr",
    {},
    h("th", { scope: "col" }, `${words.query} ＼ ${words.key}`),
    ...places(from, to).map((key) => h("th", { scope: "col" }, bdi(attention.keyTokens[key]?.label ?? ""))),
  );
}

function cellOf(value: number, attention: Attention): HTMLElement {
  const text = attention.kind === "scores" ? formatNumber(value, 3) : formatPrecise(value);
  return h("td", {}, h("data", { value: String(value) }, text));
}
