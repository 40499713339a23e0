/** The mask as a grid to draw on: by pointer (press and pull), or by keyboard (arrows, space; Shift paints along). */
import type { Mask } from "lookback";
import { h } from "../../view/dom";
import type { MaskLabMessages } from "./en";
import type { Place } from "./recipe";

export interface EditorActions {
  /** Shows or hides places. */
  draw(cells: readonly Place[], visible: boolean): void;
  /** The pointer or the cursor is on a place, or (null) on none. */
  point(place: Place | null): void;
}

export interface Editor {
  readonly element: HTMLElement;
  show(mask: Mask, tokens: readonly string[]): void;
  /** Marks the row and the column of a place that is pointed at elsewhere. */
  highlight(place: Place | null): void;
}

export function createEditor(t: MaskLabMessages, actions: EditorActions): Editor {
  const grid = h("div", { class: "mask-grid", role: "grid", "aria-label": t.grid, "aria-describedby": "mask-help" });
  const element = h("div", { class: "mask-editor" }, h("p", { class: "hint", id: "mask-help" }, t.gridHelp), grid);
  let length = 0;
  let mask: Mask | null = null;
  let cells: HTMLElement[] = [];
  let counts: HTMLElement[] = [];
  let cursor: Place = [0, 0];
  /** What the pull of the pointer paints; null between pulls. */
  let painting: boolean | null = null;

  const cellAt = ([row, key]: Place) => cells[row * length + key];
  const placeOf = (target: EventTarget | null): Place | null => {
    const index = target instanceof HTMLElement ? cells.indexOf(target) : -1;
    return index < 0 ? null : [Math.floor(index / length), index % length];
  };
  const paint = (place: Place, visible: boolean) => {
    if (mask && mask.visible(...place) !== visible) actions.draw([place], visible);
  };
  const moveTo = (place: Place, focus: boolean) => {
    cellAt(cursor)?.setAttribute("tabindex", "-1");
    cursor = place;
    const cell = cellAt(place);
    cell?.setAttribute("tabindex", "0");
    if (focus) cell?.focus();
  };

  grid.addEventListener("pointerdown", (event) => {
    const place = placeOf(event.target);
    if (!place || !mask || event.button !== 0) return;
    painting = !mask.visible(...place);
    // A pull goes on over other cells, so the first must not keep the pointer.
    (event.target as HTMLElement).releasePointerCapture?.(event.pointerId);
    moveTo(place, true);
    paint(place, painting);
    event.preventDefault();
  });
  grid.addEventListener("pointermove", (event) => {
    const place = placeOf(document.elementFromPoint(event.clientX, event.clientY));
    actions.point(place);
    if (place && painting !== null) paint(place, painting);
  });
  grid.addEventListener("pointerleave", () => actions.point(null));
  const stop = () => {
    painting = null;
  };
  for (const name of ["pointerup", "pointercancel"]) grid.addEventListener(name, stop);
  grid.addEventListener("pointerleave", stop);
  grid.addEventListener("focusin", (event) => {
    const place = placeOf(event.target);
    if (!place) return;
    moveTo(place, false);
    actions.point(place);
  });
  grid.addEventListener("focusout", () => actions.point(null));
  grid.addEventListener("keydown", (event) => {
    if (!mask) return;
    const [row, key] = cursor;
    const inside = (index: number) => Math.max(0, Math.min(length - 1, index));
    const moves: Record<string, Place> = {
      ArrowUp: [inside(row - 1), key],
      ArrowDown: [inside(row + 1), key],
      ArrowLeft: [row, inside(key - 1)],
      ArrowRight: [row, inside(key + 1)],
      Home: [row, 0],
      End: [row, length - 1],
    };
    const next = moves[event.key];
    if (next) {
      const brush = mask.visible(row, key);
      moveTo(next, true);
      if (event.shiftKey) paint(next, brush);
    } else if (event.key === " " || event.key === "Enter") paint(cursor, !mask.visible(row, key));
    else return;
    event.preventDefault();
  });

  const build = (tokens: readonly string[]) => {
    length = tokens.length;
    grid.style.setProperty("--places", String(length));
    grid.dataset.dense = String(length > 14);
    cells = [];
    counts = [];
    const numbered = (index: number) => length <= 14 || index % 4 === 0;
    const head = h(
      "div",
      { class: "mask-row", role: "row" },
      h("span", { class: "mask-corner", role: "columnheader" }, h("span", { class: "visually-hidden" }, t.query)),
      ...tokens.map((token, key) =>
        h(
          "span",
          { class: "mask-key", role: "columnheader", title: token },
          h("span", { class: "visually-hidden" }, token),
          h("span", { "aria-hidden": "true" }, numbered(key) ? String(key) : ""),
        ),
      ),
      h("span", { class: "mask-count", role: "columnheader" }, t.seen),
    );
    const rows = tokens.map((token, row) => {
      const line = tokens.map(() => h("span", { class: "mask-cell", role: "gridcell", tabindex: -1 }));
      cells.push(...line);
      const count = h("span", { class: "mask-count", role: "gridcell" });
      counts.push(count);
      const name = h("span", { class: "mask-query", role: "rowheader" }, h("i", {}, String(row)), h("bdi", {}, token));
      return h("div", { class: "mask-row", role: "row" }, name, ...line, count);
    });
    grid.replaceChildren(head, ...rows);
    moveTo([Math.min(cursor[0], length - 1), Math.min(cursor[1], length - 1)], false);
  };

  let built = "";
  return {
    element,
    show(next, tokens) {
      mask = next;
      const names = JSON.stringify(tokens);
      if (names !== built) build(tokens);
      built = names;
      const bits = next.data;
      cells.forEach((cell, index) => {
        const visible = bits[index] === 1;
        const [row, key] = [Math.floor(index / length), index % length];
        if (cell.getAttribute("aria-selected") === String(visible)) return;
        cell.setAttribute("aria-selected", String(visible));
        cell.setAttribute("aria-label", t.cell(tokens[row] ?? "", tokens[key] ?? "", visible));
      });
      counts.forEach((count, row) => {
        const seen = bits.subarray(row * length, (row + 1) * length).reduce((sum, bit) => sum + bit, 0);
        count.textContent = String(seen);
        count.classList.toggle("blind", seen === 0);
      });
    },
    highlight(place) {
      cells.forEach((cell, index) => {
        const [row, key] = [Math.floor(index / length), index % length];
        cell.classList.toggle("crossed", place !== null && (row === place[0] || key === place[1]));
        cell.classList.toggle("pointed", place !== null && row === place[0] && key === place[1]);
      });
    },
  };
}
