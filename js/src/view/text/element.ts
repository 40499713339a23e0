/** <attention-text>: the text itself, tinted by where the chosen token looks. */

import { Bar } from "../controls.js";
import type { Attention } from "../data.js";
import { bdi, escaped, h } from "../dom.js";
import type { CellDetail } from "../events.js";
import { formatNumber, formatPercent, formatPrecise } from "../format.js";
import { DIRECTIONS, type Direction, largestOf, matrixOf, strongest, sumsOf } from "../looks.js";
import { csvOf } from "../map/export.js";
import { detailOf } from "../map/readout.js";
import { Shades } from "../map/shades.js";
import { pngOfScene, type Scene, svgOfScene } from "../marks.js";
import { ScaledElement } from "../scaled.js";
import { TableTwin } from "../table.js";
import type { Token } from "../tokens.js";
import { headName, quote } from "../words.js";
import { Flow, settingOf } from "./flow.js";
import { curveOf, drawLinks, type Link, sceneOf } from "./picture.js";
import { type Sides, sidesOf, targetsOf } from "./sides.js";
import { TEXT_STYLES } from "./styles.js";

/** So many of the strongest are named below the text. */
const NAMED = 5;

const nameOf = (token: Token | undefined): string => (token ? settingOf(token).shown : "");

interface Choice {
  /** Which of the texts, and which of its tokens. */
  readonly side: number;
  readonly tokens: readonly number[];
}

export class AttentionText extends ScaledElement {
  static override observedAttributes = [...ScaledElement.observedAttributes, "direction", "top-k", "threshold"];
  static override styles = TEXT_STYLES;

  readonly #flows: Flow[] = [];
  readonly #texts = h("div", { class: "texts" });
  readonly #links = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  readonly #readout = h("div", { part: "readout", class: "readout" });
  readonly #table = new TableTwin();
  readonly #bar = new Bar(this, (open) => {
    this.#table.open = open;
    this.requestUpdate();
  });
  #attention: Attention | null = null;
  #sides: Sides["sides"] | null = null;
  #chosen: Choice | null = null;
  #at: Choice | null = null;

  constructor() {
    super();
    this.#links.classList.add("links");
    this.#links.setAttribute("part", "links");
    this.#links.setAttribute("aria-hidden", "true");
    const foot = h("div", { class: "foot" }, this.#readout, this.#bar.element);
    this.content.append(this.#texts, foot, this.#table.element);
  }

  /** 'from' a chosen query to what it looks at, or 'to' a chosen key from what looks at it. Two texts go both ways. */
  get direction(): Direction {
    return this.choice("direction", this.getAttribute("direction") ?? "from", DIRECTIONS);
  }
  set direction(direction: Direction) {
    this.setAttribute("direction", direction);
  }

  /** Links to so many of the strongest; default 3, where no threshold is given. */
  get topK(): number {
    return this.numberAttribute("top-k", 3);
  }
  set topK(count: number) {
    this.setAttribute("top-k", String(count));
  }

  /** Links to all weights from it on; null = the strongest, whatever they are. */
  get threshold(): number | null {
    return this.hasAttribute("threshold") ? this.numberAttribute("threshold", 0) : null;
  }
  set threshold(threshold: number | null) {
    if (threshold === null) this.removeAttribute("threshold");
    else this.setAttribute("threshold", String(threshold));
  }

  /** The tokens that are chosen, by their positions in their text. */
  get chosen(): readonly number[] {
    const tokens = this.#sides?.[this.#chosen?.side ?? 0]?.tokens ?? [];
    return (this.#chosen?.tokens ?? []).map((token) => tokens[token]?.position ?? token);
  }

  /** What the chosen tokens, or the one that is pointed at, look at or are looked at by; by the matrix' columns or rows. */
  get amounts(): Float32Array | null {
    return this.#looks()?.amounts ?? null;
  }

  /** The head's numbers: keys in the first line, then a line per query. */
  toCSV(): string {
    const attention = this.#ready();
    return csvOf(attention, this.#matrix(attention));
  }

  toSVG(): string {
    return svgOfScene(this.#scene(), this.#title(this.#ready()));
  }

  async toPNG(): Promise<Blob> {
    return pngOfScene(this.#scene(), Math.max(2, window.devicePixelRatio));
  }

  /** The tinted text as markup that stands alone. */
  toHTML(): string {
    const attention = this.#ready();
    const { look } = this;
    const texts = this.#flows.map((flow) => {
      const tokens = Array.from(flow.element.childNodes, (node) => {
        if (!(node instanceof HTMLElement)) return escaped(node.textContent ?? "");
        const { backgroundColor, color } = node.style;
        const style = backgroundColor ? ` style="background:${backgroundColor};color:${color};border-radius:3px"` : "";
        return `<span${style}>${escaped(node.textContent ?? "")}</span>`;
      });
      return `<p dir="${flow.element.dir}">${tokens.join("")}</p>`;
    });
    const style = `background:${look.paper};color:${look.ink};font:16px/1.9 ${look.font};white-space:pre-wrap`;
    return `<figure style="${escaped(style)}">${texts.join("")}<figcaption>${escaped(this.#title(attention))}</figcaption></figure>\n`;
  }

  protected override update(attention: Attention): void {
    const changed = this.#attention !== attention;
    this.#attention = attention;
    this.selection(attention);
    const sides = sidesOf(attention, this.direction);
    const before = this.#sides;
    this.#sides = sides;
    if (changed || before?.length !== sides.length || before[0].direction !== sides[0].direction) {
      this.#chosen = null;
      this.#at = null;
      this.#build(sides);
    }
    const { words } = this;
    sides.forEach(({ tokens, places }, side) => {
      const flow = this.#flows[side]!;
      flow.show(tokens, (token) => (places[token] ?? -1) >= 0);
      const name =
        sides.length === 1
          ? this.#title(attention)
          : side === 0
            ? words.queries(tokens.length)
            : words.keys(tokens.length);
      flow.element.setAttribute("aria-label", this.label ?? name);
      flow.element.setAttribute("aria-description", words.textHelp);
      const heading = flow.element.previousElementSibling;
      if (heading) heading.textContent = side === 0 ? words.query : words.key;
    });
    this.#bar.element.hidden = this.hideToolbar;
    this.#bar.show(words, this.#table.open);
    if (this.#table.open) this.#table.show(attention, this.#matrix(attention), words, this.#title(attention));
    this.#paint();
  }

  protected override follow(detail: CellDetail | null, locked: boolean): void {
    const sides = this.#sides;
    if (!sides) return;
    const from = sides[0].direction === "from";
    const position = detail && (from ? detail.queryToken : detail.keyToken).position;
    const token = detail ? sides[0].tokens.findIndex((each) => each.position === position) : -1;
    const choice = token < 0 ? null : { side: 0, tokens: [token] };
    this.#chosen = locked ? choice : null;
    this.#at = choice;
    this.#paint();
  }

  #ready(): Attention {
    this.flush();
    return this.exported(this.#attention);
  }

  #title(attention: Attention): string {
    const { layer, head } = this.selection(attention);
    const { words } = this;
    return `${words.text}, ${words.layer} ${attention.layerNumbers[layer]}, ${words.head} ${headName(attention, head, words)}`;
  }

  #build(sides: Sides["sides"]): void {
    this.#flows.length = 0;
    const parts = sides.map((_, side) => {
      const flow = new Flow({
        point: (token, byKey) => this.#point(token === null ? null : { side, tokens: [token] }, byKey),
        press: (token, more) => this.#press(side, token, more),
        release: () => this.#release(),
      });
      this.#flows.push(flow);
      return sides.length === 1 ? flow.element : h("div", { class: "side" }, h("h3", {}), flow.element);
    });
    this.#texts.classList.toggle("two", sides.length === 2);
    this.#texts.replaceChildren(...parts, this.#links);
  }

  #matrix(attention: Attention): Float32Array {
    const { layer, head } = this.selection(attention);
    return matrixOf(attention, layer, head, this.valueWeighted);
  }

  /** What is followed now, and how strongly it looks at each token of which text. */
  #looks() {
    const attention = this.#attention;
    const sides = this.#sides;
    const choice = this.#chosen ?? this.#at;
    if (!attention || !sides || !choice) return null;
    const side = sides[choice.side]!;
    const places = choice.tokens.map((token) => side.places[token] ?? -1).filter((place) => place >= 0);
    if (places.length === 0) return null;
    const amounts = sumsOf(attention, this.#matrix(attention), side.direction, places);
    return { attention, sides, choice, side, places, amounts, targets: targetsOf(attention, sides, choice.side) };
  }

  #shades(attention: Attention, amounts: Float32Array): Shades {
    return new Shades(attention.kind, largestOf(amounts), this.scale, this.colorScale, this.look);
  }

  #linked(amounts: Float32Array): number[] {
    const { threshold } = this;
    return threshold === null ? strongest(amounts, { count: this.topK }) : strongest(amounts, { threshold });
  }

  #paint(): void {
    const looks = this.#looks();
    const at = this.#at;
    this.#flows.forEach((flow, side) => {
      const chosen = this.#chosen?.side === side ? this.#chosen.tokens : [];
      if (!looks || looks.targets.side !== side) flow.paint(() => null);
      else {
        const shades = this.#shades(looks.attention, looks.amounts);
        const placeOf = new Map(looks.targets.tokens.map((token, place) => [token, place]));
        flow.paint((token) => {
          const amount = looks.amounts[placeOf.get(token) ?? -1];
          if (amount === undefined || shades.isMasked(amount)) return "masked";
          return { ground: shades.css(amount), ink: shades.ink(amount) };
        });
      }
      flow.mark(chosen, at?.side === side ? (at.tokens[0] ?? null) : null);
    });
    this.#showLinks();
    this.#showReadout();
  }

  #linkList(): Link[] {
    const looks = this.#looks();
    if (!looks) return [];
    const { amounts, choice, targets } = looks;
    const most = largestOf(amounts) || 1;
    const origin = this.#texts.getBoundingClientRect();
    const shift = this.#texts.scrollTop;
    const boxOf = (side: number, token: number) => {
      const box = this.#flows[side]!.boxOf(token, origin);
      return new DOMRect(box.x, box.y + shift, box.width, box.height);
    };
    return choice.tokens.flatMap((token) =>
      this.#linked(amounts).flatMap((place) => {
        const target = targets.tokens[place] ?? -1;
        // A token that looks at itself needs no link.
        if (target < 0 || (targets.side === choice.side && target === token)) return [];
        const ends = curveOf(boxOf(choice.side, token), boxOf(targets.side, target));
        return [{ points: ends, share: Math.abs(amounts[place] ?? 0) / most }];
      }),
    );
  }

  #showLinks(): void {
    drawLinks(this.#links, this.#linkList());
  }

  #showReadout(): void {
    const looks = this.#looks();
    const { words } = this;
    if (!looks) {
      this.#readout.replaceChildren(h("span", { class: "quiet" }, words.chooseTokens));
      return;
    }
    const { choice, side, amounts, targets, sides } = looks;
    const names = choice.tokens.map((token) => bdi(nameOf(side.tokens[token])));
    const arrow = h("span", { class: "arrow", "aria-hidden": "true" }, side.direction === "from" ? "→" : "←");
    const found = strongest(amounts, { count: NAMED }).map((place) =>
      h(
        "span",
        {},
        bdi(nameOf(sides[targets.side]?.tokens[targets.tokens[place] ?? -1])),
        " ",
        h("strong", {}, this.#amount(looks.attention, amounts[place] ?? 0, choice.tokens.length)),
      ),
    );
    this.#readout.replaceChildren(
      h("span", { class: "pair" }, ...names.flatMap((name) => [name, " "])),
      arrow,
      ...found,
    );
  }

  /** Only the looks of one query are shares of a whole. */
  #amount(attention: Attention, amount: number, tokens: number): string {
    if (attention.kind === "scores") return formatNumber(amount, 3);
    return this.valueWeighted || tokens > 1 || amount > 1 ? formatPrecise(amount) : formatPercent(amount);
  }

  #speak(): void {
    const looks = this.#looks();
    if (!looks) return;
    const { choice, side, amounts, targets, sides, attention } = looks;
    const { words } = this;
    const names = choice.tokens.map((token) => quote(nameOf(side.tokens[token]))).join(words.and);
    const found = strongest(amounts, { count: 3 }).map(
      (place) =>
        `${quote(nameOf(sides[targets.side]?.tokens[targets.tokens[place] ?? -1]))} ${this.#amount(attention, amounts[place] ?? 0, choice.tokens.length)}`,
    );
    this.announce((side.direction === "from" ? words.lookTo : words.lookFrom)(names, found.join(words.and)));
  }

  /** The pair of the token that was chosen last and the one it is bound to most. */
  #detail(): CellDetail | null {
    const looks = this.#looks();
    if (!looks) return null;
    const { attention, side, places, amounts } = looks;
    const { layer, head } = this.selection(attention);
    const token = places[places.length - 1]!;
    const other = strongest(amounts, { count: 1 })[0] ?? 0;
    const cell = side.direction === "from" ? { query: token, key: other } : { query: other, key: token };
    return detailOf(attention, this.#matrix(attention), layer, head, cell);
  }

  #point(choice: Choice | null, byKey: boolean): void {
    // What the keyboard chose stays when the pointer merely leaves.
    if (choice === null && this.#flows.some(({ element }) => element.matches(":focus-visible"))) return;
    this.#at = choice;
    this.#paint();
    if (this.#chosen) return;
    if (byKey) this.#speak();
    this.emit("attention-hover", this.#detail());
  }

  #press(side: number, token: number, more: boolean): void {
    const before = this.#chosen?.side === side ? this.#chosen.tokens : [];
    const kept = before.filter((each) => each !== token);
    const had = kept.length < before.length;
    const tokens = more ? (had ? kept : [...before, token]) : had && before.length === 1 ? [] : [token];
    this.#chosen = tokens.length > 0 ? { side, tokens } : null;
    this.#at = { side, tokens: [token] };
    this.#paint();
    if (this.#chosen) this.#speak();
    else this.announce(this.words.unlocked);
    this.emit("attention-select", this.#chosen && this.#detail());
  }

  #release(): void {
    const had = this.#chosen !== null;
    this.#chosen = null;
    this.#at = null;
    this.#paint();
    if (had) this.announce(this.words.unlocked);
    this.emit(had ? "attention-select" : "attention-hover", null);
  }

  #scene(): Scene {
    this.#ready();
    return sceneOf(this.#texts, this.#flows, this.#linkList(), this.look);
  }
}
