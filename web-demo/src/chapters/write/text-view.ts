/** The text, token by token, each tinted by how much the explained token looked at it. */
import { h } from "../../view/dom";
import { formatPercent } from "../../view/format";
import type { WriteMessages } from "./locales/en";
import type { Token } from "./tree";
import type { Writer } from "./writer";

/** What stands for a token: white space that ends a line is shown, and so is a piece of a character. */
function face(token: Token, t: WriteMessages["text"]): Node[] {
  if (token.special) return [h("span", { class: "glyph" }, t.start)];
  if (token.text === "") return [h("span", { class: "glyph", title: t.part }, "·")];
  const lines = token.text.split("\n");
  return lines.flatMap((line, at) =>
    at === 0
      ? [document.createTextNode(line)]
      : [
          h("span", { class: "glyph newline", title: t.newline, "aria-label": t.newline }, "⏎"),
          h("br"),
          document.createTextNode(line),
        ],
  );
}

export class TextView {
  readonly element: HTMLElement;
  readonly #text = h("div", { class: "tokens", role: "listbox", tabindex: -1 });
  readonly #darkest = h("span", {});
  readonly #writer: Writer;
  readonly #t: WriteMessages["text"];
  readonly #say: (text: string) => void;
  readonly #spans = new Map<Token, HTMLElement>();
  #tokens: Token[] = [];
  /** Its place among the page's tab stops. */
  #cursor = 0;

  constructor(writer: Writer, t: WriteMessages["text"], say: (text: string) => void) {
    this.#writer = writer;
    this.#t = t;
    this.#say = say;
    this.#text.setAttribute("aria-label", t.label);
    const key = (className: string, label: string) => h("span", { class: `legend-key ${className}` }, h("i"), label);
    this.element = h(
      "div",
      { class: "written-text" },
      this.#text,
      h(
        "p",
        { class: "hint legend" },
        key("yours", t.legendYours),
        key("models", t.legendModel),
        key("tint", t.legendTint),
        this.#darkest,
        h("span", { class: "visually-hidden" }, t.help),
      ),
    );
    this.#listen();
  }

  show(): void {
    const path = this.#writer.tree.path();
    const isLonger = this.#tokens.length > 0 && this.#tokens.every((token, at) => path[at] === token);
    if (!isLonger) {
      this.#spans.clear();
      this.#text.replaceChildren();
    }
    const from = isLonger ? this.#tokens.length : 0;
    const atEnd = this.#text.scrollTop + this.#text.clientHeight >= this.#text.scrollHeight - 40;
    this.#text.append(...path.slice(from).map((token, at) => this.#span(token, from + at)));
    this.#tokens = path;
    if (path.length === 0) this.#text.append(h("p", { class: "nothing" }, this.#t.empty));
    if (path.length > from && atEnd) this.#text.scrollTop = this.#text.scrollHeight;
    this.#tint();
  }

  #span(token: Token, at: number): HTMLElement {
    const className = `token ${token.given ? "given" : ""} ${token.special ? "special" : ""}`;
    const span = h(
      "span",
      {
        class: className,
        role: "option",
        tabindex: -1,
        "aria-selected": "false",
        "data-at": at,
        "data-id": token.id,
        "aria-label": token.text !== "" && token.text.trim() === "" ? this.#t.space : undefined,
      },
      ...face(token, this.#t),
    );
    this.#spans.set(token, span);
    return span;
  }

  /** Colours are relative to the token that is looked at most, but for the very first: many heads rest their eyes there. */
  #tint(): void {
    const { shown } = this.#writer;
    const { kept } = this.#writer.state;
    const path = this.#tokens;
    const row = shown ? shown.row : null;
    const at = shown ? path.indexOf(shown) : -1;
    const seen = row && at > 0 ? row : new Float32Array(0);
    let most = 0;
    for (let key = seen.length > 1 ? 1 : 0; key < seen.length; key++) most = Math.max(most, seen[key] ?? 0);
    path.forEach((token, key) => {
      const span = this.#spans.get(token);
      if (!span) return;
      const weight = key < seen.length ? (seen[key] ?? 0) : 0;
      const tint = most > 0 ? Math.min(1, weight / most) : 0;
      const value = tint.toFixed(3);
      if (span.dataset.tint !== value) {
        span.dataset.tint = value;
        span.style.setProperty("--tint", value);
      }
      span.classList.toggle("shown", token === shown);
      span.classList.toggle("later", at >= 0 && key > at);
      const selected = String(token === kept);
      if (span.getAttribute("aria-selected") !== selected) span.setAttribute("aria-selected", selected);
    });
    this.#darkest.textContent = most > 0 ? this.#t.darkest(formatPercent(most)) : "";
    this.#stop(Math.min(this.#cursor, path.length - 1), kept ? path.indexOf(kept) : path.length - 1);
  }

  /** One of the tokens can be reached with the tab key: the one that is kept, or else the last. */
  #stop(old: number, next: number): void {
    if (document.activeElement && this.#text.contains(document.activeElement)) return;
    const before = this.#tokens[old];
    const now = this.#tokens[next];
    if (before) this.#spans.get(before)?.setAttribute("tabindex", "-1");
    if (now) this.#spans.get(now)?.setAttribute("tabindex", "0");
    this.#cursor = Math.max(0, next);
  }

  #tokenOf(target: EventTarget | null): Token | null {
    const span = target instanceof Element ? target.closest(".token") : null;
    return span instanceof HTMLElement ? (this.#tokens[Number(span.dataset.at)] ?? null) : null;
  }

  #listen(): void {
    const text = this.#text;
    text.addEventListener("pointerover", (event) => {
      if (event.pointerType === "mouse") this.#writer.point(this.#tokenOf(event.target));
    });
    text.addEventListener("pointerleave", () => this.#writer.point(null));
    text.addEventListener("click", (event) => {
      const token = this.#tokenOf(event.target);
      if (!token) return;
      this.#writer.keep(token);
      this.#focus(this.#tokens.indexOf(token));
    });
    text.addEventListener("focusout", (event) => {
      if (!text.contains(event.relatedTarget as Node | null)) this.#writer.point(null);
    });
    text.addEventListener("keydown", (event) => this.#key(event));
  }

  #focus(at: number): void {
    const [old, next] = [this.#tokens[this.#cursor], this.#tokens[at]];
    if (!next) return;
    if (old) this.#spans.get(old)?.setAttribute("tabindex", "-1");
    const span = this.#spans.get(next);
    span?.setAttribute("tabindex", "0");
    span?.focus({ preventScroll: false });
    this.#cursor = at;
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.#tokens.length - 1;
    const moves: Record<string, number> = {
      ArrowLeft: this.#cursor - 1,
      ArrowRight: this.#cursor + 1,
      ArrowUp: this.#lineAbove(-1),
      ArrowDown: this.#lineAbove(1),
      Home: 0,
      End: last,
    };
    const token = this.#tokens[this.#cursor];
    const move = moves[event.key];
    if (move !== undefined) {
      this.#focus(Math.max(0, Math.min(last, move)));
      const next = this.#tokens[this.#cursor];
      if (next) {
        this.#writer.point(next);
        this.#say(next.special ? this.#t.start : next.text);
      }
    } else if ((event.key === "Enter" || event.key === " ") && token) this.#writer.keep(token);
    else if (event.key === "Escape") {
      this.#writer.point(null);
      if (this.#writer.state.kept) this.#writer.keep(this.#writer.state.kept);
    } else return;
    event.preventDefault();
  }

  /** The token nearest above (−1) or below (1) the cursor. */
  #lineAbove(direction: 1 | -1): number {
    const here = this.#tokens[this.#cursor];
    const box = here ? this.#spans.get(here)?.getBoundingClientRect() : undefined;
    if (!box) return this.#cursor;
    let best = this.#cursor;
    let bestDistance = Number.POSITIVE_INFINITY;
    this.#tokens.forEach((token, at) => {
      const other = this.#spans.get(token)?.getBoundingClientRect();
      if (!other) return;
      const lines = (other.top - box.top) * direction;
      if (lines < box.height / 2) return;
      const distance = lines * 100 + Math.abs(other.left - box.left);
      if (distance < bestDistance) [best, bestDistance] = [at, distance];
    });
    return best;
  }
}
