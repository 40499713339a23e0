/** A tile in its colour for each head of the layer: a click turns it on or off, a double click leaves it alone on. */
import { inkOn, parseColour } from "../colours.js";
import type { Attention } from "../data.js";
import { h } from "../dom.js";
import type { Words } from "../words.js";

/** Heads after a click on one; the last one stays on. */
export function toggled(on: readonly number[], head: number): number[] {
  if (!on.includes(head)) return [...on, head].sort((a, b) => a - b);
  return on.length === 1 ? [...on] : on.filter((each) => each !== head);
}

/** Heads after a double click on one: it alone, or all again where it was alone. */
export function isolated(on: readonly number[], head: number, heads: number): number[] {
  return on.length === 1 && on[0] === head ? Array.from({ length: heads }, (_, each) => each) : [head];
}

export class Tiles {
  readonly element = h("div", { part: "tiles", class: "tiles", role: "group" });
  readonly #choose: (heads: readonly number[]) => void;
  #on: readonly number[] = [];
  /** Before the first click of two. */
  #before: readonly number[] = [];
  #made = "";
  #tiles: HTMLButtonElement[] = [];

  constructor(choose: (heads: readonly number[]) => void) {
    this.#choose = choose;
  }

  show(attention: Attention, on: readonly number[], colours: readonly string[], words: Words): void {
    this.#on = on;
    const made = JSON.stringify([attention.headNumbers, colours, words.tiles]);
    if (made !== this.#made) {
      this.#made = made;
      this.#tiles = attention.headNumbers.map((number, head) => this.#tile(head, number, colours[head] ?? "", words));
      this.element.replaceChildren(h("span", { class: "name", "aria-hidden": "true" }, words.tiles), ...this.#tiles);
      this.element.setAttribute("aria-label", words.tiles);
      this.element.setAttribute("aria-description", words.tilesHelp);
      this.element.title = words.tilesHelp;
    }
    this.#tiles.forEach((tile, head) => {
      tile.setAttribute("aria-pressed", String(on.includes(head)));
    });
  }

  #tile(head: number, number: number, colour: string, words: Words): HTMLButtonElement {
    const tile = h(
      "button",
      { type: "button", class: "tile", part: "tile", "aria-label": `${words.head} ${number}` },
      String(number),
    );
    tile.style.setProperty("--tile", colour);
    tile.style.setProperty("--tile-ink", inkOn(parseColour(colour)));
    tile.addEventListener("click", (event) => {
      // The second click of two is part of the double click.
      if (event.detail > 1) return;
      this.#before = this.#on;
      // For keyboards, which have no double click.
      if (event.shiftKey) this.#choose(isolated(this.#on, head, this.#tiles.length));
      else this.#choose(toggled(this.#on, head));
    });
    tile.addEventListener("dblclick", () => {
      this.#choose(isolated(this.#before, head, this.#tiles.length));
    });
    return tile;
  }
}
