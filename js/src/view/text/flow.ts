/** Tokens set as the text they make, each of them a thing to point at and to choose. */
import { h } from "../dom.js";
import { labelOf, runsRightToLeft, type Token } from "../tokens.js";

export interface FlowHost {
  /** The pointer or the keyboard is at a token; null = at none. */
  point(token: number | null, byKey: boolean): void;
  /** A token is chosen; `more` = beside those that are already. */
  press(token: number, more: boolean): void;
  release(): void;
}

export interface Tint {
  readonly ground: string;
  readonly ink: string;
}

/** What a text shows of a token: the spaces before it part words, and are no part of the token that is tinted. */
export function settingOf({ text, label, special, part }: Token): { before: string; shown: string; after: string } {
  if (special || part || text.trim() === "") return { before: "", shown: label, after: text.replace(/[^\n]/g, "") };
  const spaces = /^ */.exec(text)?.[0] ?? "";
  return { before: spaces, shown: labelOf(text.slice(spaces.length)), after: text.replace(/[^\n]/g, "") };
}

/** The direction of a text is that of its first letter that is no control token's. */
export const directionOf = (tokens: readonly Token[]): "ltr" | "rtl" =>
  runsRightToLeft(tokens.map(({ text, special }) => (special ? "" : text)).join("")) ? "rtl" : "ltr";

let made = 0;

export class Flow {
  readonly element = h("div", {
    part: "text",
    class: "text",
    tabindex: "0",
    role: "listbox",
    "aria-multiselectable": "true",
  });
  readonly #host: FlowHost;
  readonly #id = `flow${++made}`;
  #tokens: readonly Token[] = [];
  #spans: HTMLElement[] = [];
  #enabled: (token: number) => boolean = () => true;
  #at: number | null = null;

  constructor(host: FlowHost) {
    this.#host = host;
    const { element } = this;
    element.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch") this.#point(this.#tokenOf(event), false);
    });
    element.addEventListener("pointerleave", () => this.#point(null, false));
    element.addEventListener("click", (event) => {
      const token = this.#tokenOf(event);
      if (token === null) host.release();
      else this.#press(token, event.shiftKey || event.ctrlKey || event.metaKey);
    });
    element.addEventListener("keydown", (event) => this.#key(event));
  }

  /** `enabled`: whether a token can be chosen. */
  show(tokens: readonly Token[], enabled: (token: number) => boolean): void {
    this.#enabled = enabled;
    if (tokens !== this.#tokens) {
      this.#tokens = tokens;
      this.#at = null;
      this.element.dir = directionOf(tokens);
      const parts: (string | HTMLElement)[] = [];
      this.#spans = tokens.map((token, place) => {
        const { before, shown, after } = settingOf(token);
        const span = h("span", { role: "option", id: `${this.#id}-${place}`, class: "token", part: "token" }, shown);
        span.dataset.token = String(place);
        if (token.special) span.classList.add("special");
        parts.push(before, span, after);
        return span;
      });
      this.element.replaceChildren(...parts);
    }
    this.#spans.forEach((span, place) => {
      span.classList.toggle("still", !enabled(place));
      if (enabled(place)) span.removeAttribute("aria-disabled");
      else span.setAttribute("aria-disabled", "true");
    });
  }

  /** Colours every token; null = as the page is. */
  paint(tint: (token: number) => Tint | "masked" | null): void {
    this.#spans.forEach((span, place) => {
      const colours = tint(place);
      span.classList.toggle("masked", colours === "masked");
      const plain = colours === null || colours === "masked";
      span.style.backgroundColor = plain ? "" : colours.ground;
      span.style.color = plain ? "" : colours.ink;
    });
  }

  /** Frames the chosen tokens, and the one that is pointed at. */
  mark(chosen: readonly number[], at: number | null): void {
    this.#at = at;
    this.#spans.forEach((span, place) => {
      const isChosen = chosen.includes(place);
      span.classList.toggle("chosen", isChosen);
      span.classList.toggle("at", place === at);
      span.setAttribute("aria-selected", String(isChosen));
    });
    if (at === null) this.element.removeAttribute("aria-activedescendant");
    else this.element.setAttribute("aria-activedescendant", `${this.#id}-${at}`);
  }

  get tokens(): readonly Token[] {
    return this.#tokens;
  }

  spanOf(token: number): HTMLElement | undefined {
    return this.#spans[token];
  }

  /** Where a token is, from `origin`; of one that is broken over two lines the longer part. */
  boxOf(token: number, origin: DOMRect): DOMRect {
    const rects = [...(this.#spans[token]?.getClientRects() ?? [])].sort((a, b) => b.width - a.width);
    const { left, top, width, height } = rects[0] ?? new DOMRect();
    return new DOMRect(left - origin.left, top - origin.top, width, height);
  }

  #tokenOf(event: Event): number | null {
    const place = (event.target as Element).closest<HTMLElement>("[data-token]")?.dataset.token;
    return place === undefined || !this.#enabled(Number(place)) ? null : Number(place);
  }

  #point(token: number | null, byKey: boolean): void {
    if (token === this.#at) return;
    this.#host.point(token, byKey);
  }

  #press(token: number, more: boolean): void {
    this.#host.press(token, more);
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const onward = this.element.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    const back = onward === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const from = this.#at ?? -1;
    const last = this.#tokens.length - 1;
    if (event.key === onward) this.#walk(from + 1, 1);
    else if (event.key === back) this.#walk(this.#at === null ? last : from - 1, -1);
    else if (event.key === "Home") this.#walk(0, 1);
    else if (event.key === "End") this.#walk(last, -1);
    else if (event.key === "ArrowDown") this.#line(1);
    else if (event.key === "ArrowUp") this.#line(-1);
    else if ((event.key === "Enter" || event.key === " ") && this.#at !== null) this.#press(this.#at, event.shiftKey);
    else if (event.key === "Escape") this.#host.release();
    else return;
    event.preventDefault();
  }

  /** To the next token that can be chosen. */
  #walk(start: number, step: 1 | -1): void {
    for (let place = start; place >= 0 && place < this.#tokens.length; place += step)
      if (this.#enabled(place)) {
        this.#go(place);
        return;
      }
  }

  /** To the nearest token of the line below or above. */
  #line(step: 1 | -1): void {
    if (this.#at === null) {
      this.#walk(0, 1);
      return;
    }
    const origin = new DOMRect();
    const here = this.boxOf(this.#at, origin);
    let best: { place: number; line: number; distance: number } | null = null;
    for (let place = this.#at + step; place >= 0 && place < this.#tokens.length; place += step) {
      const box = this.boxOf(place, origin);
      if (Math.abs(box.top - here.top) < here.height / 2 || !this.#enabled(place)) continue;
      if (best && Math.abs(box.top - best.line) > here.height / 2) break;
      const distance = Math.abs(box.left + box.width / 2 - here.left - here.width / 2);
      if (!best || distance < best.distance) best = { place, line: box.top, distance };
    }
    if (best) this.#go(best.place);
  }

  #go(place: number): void {
    this.#spans[place]?.scrollIntoView({ block: "nearest", behavior: "instant" });
    this.#point(place, true);
  }
}
