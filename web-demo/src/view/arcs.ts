/** The sentence with an arc from the chosen word to each word it looks at: back above the line, ahead below it. */
import { at, type Grid } from "../engine/grid";
import { h, svg } from "./dom";
import { formatPercent } from "./format";

export interface ArcsModel {
  readonly tokens: readonly string[];
  readonly query: number;
  /** Softmax weights, and the additive mask: −∞ = hidden. */
  readonly weights: Grid;
  readonly bias: Grid;
}

const ABOVE = 108;
const BELOW = 92;

export class ArcsView {
  readonly element: HTMLElement;
  readonly #row = h("div", { class: "arc-tokens" });
  readonly #picture = svg("svg", { class: "arcs", "aria-hidden": "true" });
  readonly #words: { choose: string; hidden: string };
  readonly #choose: (query: number) => void;
  #model: ArcsModel | null = null;

  constructor(words: { choose: string; hidden: string }, choose: (query: number) => void) {
    this.#words = words;
    this.#choose = choose;
    const canvas = h("div", { class: "arc-canvas" }, this.#picture, this.#row);
    this.element = h(
      "fieldset",
      { class: "arc-figure" },
      h("legend", { class: "visually-hidden" }, words.choose),
      canvas,
    );
    new ResizeObserver(() => this.#drawArcs()).observe(this.element);
  }

  show(model: ArcsModel): void {
    const before = this.#model?.tokens;
    this.#model = model;
    if (!before || before.length !== model.tokens.length || before.some((token, i) => token !== model.tokens[i]))
      this.#row.replaceChildren(...model.tokens.map((token, index) => this.#token(token, index)));
    [...this.#row.children].forEach((label, key) => {
      const input = label.querySelector("input");
      const share = label.querySelector(".share");
      if (input) input.checked = key === model.query;
      const hidden = at(model.bias, model.query, key) === Number.NEGATIVE_INFINITY;
      label.classList.toggle("masked", hidden);
      label.classList.toggle("ahead", !hidden && key > model.query);
      if (share) share.textContent = hidden ? this.#words.hidden : formatPercent(at(model.weights, model.query, key));
    });
    this.#drawArcs();
  }

  redraw(): void {
    this.#drawArcs();
  }

  #token(token: string, index: number): HTMLElement {
    const input = h("input", { type: "radio", name: "arc-query", class: "visually-hidden", value: index });
    input.addEventListener("change", () => this.#choose(index));
    return h(
      "label",
      { class: "arc-token" },
      input,
      h("span", { class: "word" }, token),
      h("span", { class: "share" }),
    );
  }

  #drawArcs(): void {
    const model = this.#model;
    const labels = [...this.#row.children] as HTMLElement[];
    const from = labels[model?.query ?? 0];
    if (!model || !from) return;
    const width = this.#row.scrollWidth;
    const height = this.#row.offsetHeight;
    this.#picture.setAttribute("width", String(width));
    this.#picture.setAttribute("height", String(ABOVE + height + BELOW));
    this.#picture.replaceChildren();
    const centre = (label: HTMLElement) => label.offsetLeft + label.offsetWidth / 2;
    const middle = centre(from);
    const half = from.offsetWidth / 2 - 8;
    const behind = model.query;
    const before = labels.length - 1 - model.query;
    // The arcs lie within each other: at the chosen word the inner ones end nearer to where they come from, and what it
    // sees of itself is a loop beside them.
    const endOf = (key: number): number => {
      const spread = (count: number, room: number) => (count > 1 ? Math.min(11, room / (count - 1)) : 0);
      if (key < behind) {
        const step = spread(behind, half + 2);
        return middle + 2 - half / 2 - 1 + (behind - key - (behind + 1) / 2) * step;
      }
      return middle - (key - behind - (before + 1) / 2) * spread(before, 2 * half);
    };
    labels.forEach((label, key) => {
      const weight = at(model.weights, model.query, key);
      const hidden = at(model.bias, model.query, key) === Number.NEGATIVE_INFINITY;
      const ahead = key > model.query;
      const [x1, x2] = [key === model.query ? middle : endOf(key), centre(label)];
      const room = ahead ? BELOW : ABOVE;
      const y = ahead ? ABOVE + height + 2 : ABOVE - 2;
      // However many there are, a longer arc rises higher, so that none crosses another.
      const length = Math.abs(x2 - middle);
      const longest = Math.abs(centre((ahead ? labels.at(-1) : labels[0]) ?? from) - middle);
      const natural = (distance: number) => 34 + distance * 0.42;
      const highest = Math.min(room * 1.22, natural(longest));
      const lift = Math.min(natural(length), highest * Math.sqrt(length / (longest || 1))) * (ahead ? 1 : -1);
      const path =
        key === model.query
          ? behind > 0
            ? `M ${x1 + 10} ${y} C ${x1 + 4} ${y - 54}, ${x1 + 58} ${y - 54}, ${x1 + 28} ${y}`
            : `M ${x1 - 11} ${y} C ${x1 - 40} ${y - 62}, ${x1 + 40} ${y - 62}, ${x1 + 11} ${y}`
          : `M ${x1} ${y} C ${x1} ${y + lift}, ${x2} ${y + lift}, ${x2} ${y}`;
      this.#picture.append(
        svg("path", {
          d: path,
          class: hidden ? "arc hidden" : ahead ? "arc ahead" : "arc back",
          "stroke-width": hidden ? 1.5 : Math.max(1.2, 11 * weight),
        }),
      );
    });
  }
}
