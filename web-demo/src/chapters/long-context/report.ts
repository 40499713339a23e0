/** What a run says: figures, the maps of the heads, their measures, and one word's look spelled out. */
import "lookback/view";
import { slider } from "../../view/controls";
import { h, svg } from "../../view/dom";
import { formatPercent } from "../../view/format";
import type { LongContextMessages } from "./en";
import { HEADS } from "./inputs";
import { type LongResult, meanOf, stretches, TOP } from "./run";

const POINTS = 96;
const LINE = { width: 220, height: 40 };

export function mebibytes(bytes: number, lang: string): string {
  const digits = bytes < 2 ** 20 ? 2 : bytes < 10 * 2 ** 20 ? 1 : 0;
  return `${(bytes / 2 ** 20).toLocaleString(lang, { maximumFractionDigits: digits })} MiB`;
}

/** A line over the text, from 0 to its largest value. */
function sparkline(values: readonly number[], label: string): SVGElement {
  const most = Math.max(...values, 1e-9);
  const x = (index: number) => (index / Math.max(1, values.length - 1)) * LINE.width;
  const y = (value: number) => LINE.height - 2 - (value / most) * (LINE.height - 4);
  const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const picture = svg("svg", {
    class: "sparkline",
    viewBox: `0 0 ${LINE.width} ${LINE.height}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label,
  });
  picture.append(svg("polyline", { points, "vector-effect": "non-scaling-stroke" }));
  return picture;
}

export class Report {
  readonly element: HTMLElement;
  readonly #t: LongContextMessages;
  readonly #numbers: Intl.NumberFormat;
  readonly #facts = h("dl", { class: "facts long-facts" });
  readonly #lead = h("p", { class: "hint" });
  readonly #maps;
  readonly #measures = h("tbody", {});
  readonly #row;
  readonly #excerpt = h("p", { class: "excerpt" });
  readonly #looks = h("div", { class: "looks" });
  readonly #choose: (row: number) => void;
  #result: LongResult | null = null;
  #at = 0;

  constructor(t: LongContextMessages, lang: string, longest: number, choose: (row: number) => void) {
    this.#t = t;
    this.#numbers = new Intl.NumberFormat(lang);
    this.#choose = choose;
    this.#maps = HEADS.map((head) => {
      const map = h("attention-map", { marginals: "none", scale: "log", "hide-toolbar": true, "max-height": 560 });
      map.label = t.mapLabel(t.heads[head].name);
      map.addEventListener("attention-select", (event) => {
        const detail = (event as CustomEvent<{ query: number } | null>).detail;
        if (detail) this.#choose(this.#middleOf(detail.query));
      });
      return map;
    });
    this.#row = slider(
      t.row,
      { min: 0, max: longest - 1, marks: false },
      (row) => t.rowSpoken(this.#numbers.format(row), this.#result?.tokens[row] ?? ""),
      (row) => this.#choose(row),
    );
    this.element = this.#build(lang);
    this.element.hidden = true;
  }

  #build(lang: string): HTMLElement {
    const t = this.#t;
    return h(
      "div",
      { class: "long-report", lang },
      this.#facts,
      h("h2", {}, t.mapsTitle),
      this.#lead,
      h(
        "div",
        { class: "long-maps" },
        ...HEADS.map((head, index) =>
          h(
            "section",
            { "data-head": head },
            h("h3", {}, t.heads[head].name),
            h("p", { class: "hint" }, t.heads[head].says),
            this.#maps[index] ?? null,
          ),
        ),
      ),
      h("h2", {}, t.measures),
      h(
        "div",
        { class: "table-place", tabindex: 0, role: "group", "aria-label": t.measures },
        h(
          "table",
          { class: "plain measures" },
          h("thead", {}, h("tr", {}, ...t.measureHead.map((name) => h("th", { scope: "col" }, name)))),
          this.#measures,
        ),
      ),
      h("h2", {}, t.rowTitle),
      this.#row.element,
      this.#excerpt,
      h("p", { class: "hint" }, t.rowLead(TOP)),
      this.#looks,
    );
  }

  show(result: LongResult, row: number): void {
    this.#result = result;
    this.element.hidden = false;
    this.#showFacts(result);
    this.#showMaps(result);
    this.#showMeasures(result);
    this.showRow(row);
  }

  /** The middle of a cell's rows. */
  #middleOf(cell: number): number {
    const length = this.#result?.tokens.length ?? 0;
    const cells = this.#result?.map.dims.at(-2) ?? 1;
    return Math.min(length - 1, Math.floor(((cell + 0.5) * length) / cells));
  }

  #showFacts({ tokens, milliseconds, pairs, bytes }: LongResult): void {
    const { facts, share, milliseconds: ms, rate } = this.#t;
    const { locale } = this.#numbers.resolvedOptions();
    const fact = (name: keyof typeof facts, value: number, text: string, more = "") =>
      h(
        "div",
        {},
        h("dt", {}, facts[name]),
        h("dd", { "data-fact": name }, h("data", { value }, text), ...(more ? [h("small", {}, more)] : [])),
      );
    const format = (value: number) => this.#numbers.format(Math.round(value));
    this.#facts.replaceChildren(
      fact("words", tokens.length, format(tokens.length)),
      fact("time", milliseconds, ms(format(milliseconds)), rate((pairs / milliseconds) * 1000, format)),
      fact("pairs", pairs, format(pairs)),
      fact("weights", bytes.weights, mebibytes(bytes.weights, locale)),
      fact("results", bytes.results, mebibytes(bytes.results, locale), share(format(bytes.weights / bytes.results))),
      fact("wasm", bytes.wasm, mebibytes(bytes.wasm, locale)),
    );
  }

  #showMaps({ map, tokens }: LongResult): void {
    const cells = map.dims.at(-1) ?? 1;
    const words = tokens.length / cells;
    this.#lead.textContent = this.#t.mapsLead(cells, Number.isInteger(words) ? String(words) : words.toFixed(1));
    const names = Array.from({ length: cells }, (_, cell) =>
      this.#numbers.format(Math.floor((cell * tokens.length) / cells)),
    );
    this.#maps.forEach((element, head) => {
      const data = map.data.slice(head * cells * cells, (head + 1) * cells * cells);
      element.data = { weights: { data, dims: [1, cells, cells] }, tokens: names };
    });
  }

  #showMeasures({ entropy, distance }: LongResult): void {
    const number = (name: string, value: number) =>
      h(
        "data",
        { value, "data-measure": name },
        value.toLocaleString(this.#numbers.resolvedOptions().locale, {
          minimumFractionDigits: 2,
          maximumFractionDigits: 2,
        }),
      );
    this.#measures.replaceChildren(
      ...HEADS.map((head, index) => {
        const nats = meanOf(entropy, index);
        const cell = (name: string, value: number, line: SVGElement | null) =>
          h("td", {}, number(name, value), ...(line ? [line] : []));
        return h(
          "tr",
          { "data-head": head },
          h("th", { scope: "row" }, this.#t.heads[head].name),
          cell("entropy", nats, sparkline(stretches(entropy, index, POINTS), this.#t.entropyLine)),
          cell("words", Math.exp(nats), null),
          cell(
            "distance",
            meanOf(distance, index),
            sparkline(stretches(distance, index, POINTS), this.#t.distanceLine),
          ),
        );
      }),
    );
  }

  /** Text around a place, the word itself marked. */
  #around(at: number, reach: number): (Node | string)[] {
    const tokens = this.#result?.tokens ?? [];
    const list = tokens.slice(Math.max(0, at - reach), at + reach + 1);
    const middle = Math.min(at, reach);
    return list.flatMap((token, index) => {
      // What closes a sentence that is not shown.
      if (index === 0 && index !== middle && !/[\p{L}\p{N}“‘(]/u.test(token)) return [];
      const spaced = index > 0 && /^[\p{L}\p{N}“‘(]/u.test(token) && !/^\p{Script=Han}/u.test(token);
      const word = index === middle ? h("mark", {}, token) : token;
      return spaced ? [" ", word] : [word];
    });
  }

  showRow(row: number): void {
    if (!this.#result) return;
    const { tokens, top } = this.#result;
    this.#at = Math.min(row, tokens.length - 1);
    const at = this.#at;
    this.#row.range(0, tokens.length - 1);
    this.#row.show(at);
    this.#row.output.textContent = this.#numbers.format(at);
    this.#excerpt.replaceChildren("… ", ...this.#around(at, 14), " …");
    this.#looks.replaceChildren(
      ...HEADS.map((head, index) => {
        const from = (index * tokens.length + at) * TOP;
        const items = Array.from({ length: TOP }, (_, place) => ({
          key: top.indices[from + place] ?? -1,
          weight: top.weights[from + place] ?? 0,
        })).filter(({ key }) => key >= 0);
        return h(
          "section",
          { "data-head": head },
          h("h3", {}, this.#t.heads[head].name),
          items.length === 0
            ? h("p", {}, this.#t.nothing)
            : h("ol", {}, ...items.map((item) => this.#look(item, items[0]!.weight))),
        );
      }),
    );
  }

  /** The bar is the weight as a share of the list's largest. */
  #look({ key, weight }: { key: number; weight: number }, largest: number): HTMLElement {
    const share = h("i", { "aria-hidden": "true" });
    share.style.setProperty("--share", String(largest > 0 ? weight / largest : 0));
    return h(
      "li",
      {},
      h("data", { class: "look-weight", value: weight }, formatPercent(weight)),
      share,
      h("data", { class: "look-place", value: key }, this.#numbers.format(key)),
      h("span", { class: "look-words" }, ...this.#around(key, 3)),
    );
  }
}
