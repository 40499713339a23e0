/** Controls that several elements have: a menu of what can be saved, and the bar of an element that has no other. */
import { h } from "./dom.js";
import { saveFile } from "./save.js";
import type { Words } from "./words.js";

export const CONTROL_STYLES = `
button, select, summary {
  background: var(--_raised);
  border: 1px solid var(--_line);
  border-radius: 6px;
  color: var(--_ink);
  cursor: pointer;
  font: inherit;
  line-height: 1.3;
  min-height: 30px;
  min-width: 30px;
  padding: 3px 9px;
}
select { padding-inline: 5px; }
button:hover, summary:hover, select:hover { border-color: var(--_muted); }
button[aria-pressed="true"], button[aria-expanded="true"] { background: var(--_ink); border-color: var(--_ink); color: var(--_paper); }
button[aria-disabled="true"] { color: var(--_muted); cursor: default; opacity: 0.6; }
.group button:not(:first-child) { border-end-start-radius: 0; border-start-start-radius: 0; margin-inline-start: -1px; }
.group button:not(:last-child) { border-end-end-radius: 0; border-start-end-radius: 0; }
.save { position: relative; }
summary { align-items: center; display: inline-flex; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::after { content: "▾"; margin-inline-start: 6px; }
.menu {
  background: var(--_paper);
  border: 1px solid var(--_line);
  border-radius: 8px;
  box-shadow: 0 6px 24px rgb(0 0 0 / 18%);
  display: grid;
  gap: 2px;
  inset-inline-end: 0;
  margin-top: 4px;
  padding: 4px;
  position: absolute;
  white-space: nowrap;
  width: max-content;
  z-index: 2;
}
.menu.turned { inset-inline: 0 auto; }
.menu button { background: none; border-color: transparent; text-align: start; }

.twin { max-height: 420px; overflow: auto; }
.turner { background: var(--_paper); display: flex; gap: 4px; inset-inline-start: 0; padding: 2px; position: sticky; top: 0; }
table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; }
caption { color: var(--_muted); padding: 4px 0; text-align: start; }
th, td { border: 1px solid var(--_line); padding: 2px 7px; text-align: end; white-space: nowrap; }
th { color: var(--_muted); font-weight: 600; }
@media (pointer: coarse) { button, select, summary { min-height: 44px; min-width: 44px; } }
`;

/** A Bar at the end of the line of a readout. */
export const BAR_STYLES = `
.foot { align-items: start; display: flex; flex-wrap: wrap; gap: 6px 16px; justify-content: space-between; }
.foot .readout { flex: 1 1 260px; }
.bar { display: flex; font-size: 13px; gap: 4px; }
`;

/** What an entry says, and what it does. */
export type MenuItem = readonly [text: string, act: () => void];

export function saveMenu(words: Words, items: readonly MenuItem[]): HTMLElement {
  const buttons = items.map(([text, act]) =>
    h(
      "button",
      {
        type: "button",
        onclick: () => {
          menu.open = false;
          act();
        },
      },
      text,
    ),
  );
  const list = h("div", { class: "menu" }, ...buttons);
  const menu = h("details", { class: "save" }, h("summary", {}, words.save), list);
  // At the page's edge it opens to the other side.
  menu.addEventListener("toggle", () => {
    list.classList.remove("turned");
    const { left, right } = list.getBoundingClientRect();
    list.classList.toggle("turned", left < 0 || right > document.documentElement.clientWidth);
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
    event.stopPropagation();
  });
  menu.addEventListener("focusout", (event) => {
    if (!menu.contains(event.relatedTarget as Node | null)) menu.open = false;
  });
  return menu;
}

/** What an element can give to its reader. */
export interface Savable {
  toPNG(): Promise<Blob>;
  toSVG(): string;
  toCSV(): string;
}

/** A button for the table, and a menu of files. */
export class Bar {
  readonly element = h("div", { part: "toolbar", class: "bar" });
  readonly #source: Savable;
  readonly #openTable: (open: boolean) => void;
  #made: Words | null = null;
  #table: HTMLButtonElement | null = null;

  constructor(source: Savable, openTable: (open: boolean) => void) {
    this.#source = source;
    this.#openTable = openTable;
  }

  show(words: Words, tableIsOpen: boolean): void {
    if (this.#made !== words) {
      this.#made = words;
      const table = h("button", { type: "button" }, words.table);
      table.addEventListener("click", () => this.#openTable(table.getAttribute("aria-expanded") !== "true"));
      this.#table = table;
      const source = this.#source;
      const file = (text: string, type: string, ending: string) =>
        saveFile(new Blob([text], { type }), `attention.${ending}`);
      const menu = saveMenu(words, [
        ["PNG", () => void source.toPNG().then((blob) => saveFile(blob, "attention.png"))],
        ["SVG", () => file(source.toSVG(), "image/svg+xml", "svg")],
        ["CSV", () => file(source.toCSV(), "text/csv", "csv")],
      ]);
      this.element.replaceChildren(table, menu);
    }
    this.#table?.setAttribute("aria-expanded", String(tableIsOpen));
  }
}
