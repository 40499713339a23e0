/** What tests of <attention-map> do inside a page. */
import type { CellDetail } from "lookback/view";

type AttentionMap = HTMLElementTagNameMap["attention-map"];

/** What tests look at in a page. */
declare global {
  var map: AttentionMap;
  var events: [string, CellDetail | null][];
  /** Middle of a cell, a little below it where numbers do not reach: its colour on the canvas. */
  var pixel: (query: number, key: number) => number[];
}

/** Runs in the page: finds the element, makes the helpers. */
export function prepare(data: unknown): Promise<void> {
  const map = document.querySelector("attention-map") as AttentionMap;
  globalThis.map = map;
  globalThis.events = [];
  for (const name of ["attention-hover", "attention-select"])
    document.addEventListener(name, (event) => events.push([name, (event as CustomEvent<CellDetail | null>).detail]));
  globalThis.pixel = (query, key) => {
    const canvas = map.shadowRoot!.querySelector("canvas")!;
    const density = devicePixelRatio;
    const { x, y } = place(query, key);
    return [...canvas.getContext("2d")!.getImageData(Math.round(x * density), Math.round(y * density), 1, 1).data];
  };
  // Where a cell is, from the data's length and the drawn square, told by its border alone.
  const place = (query: number, key: number) => {
    const box = map.drawnBox;
    const { queryLength, keyLength } = map.attention!;
    return {
      x: box.x + ((key + 0.5) * box.width) / keyLength,
      y: box.y + ((query + 0.82) * box.height) / queryLength,
    };
  };
  if (data !== null) map.data = data;
  return map.updated;
}
