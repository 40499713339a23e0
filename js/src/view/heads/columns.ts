/** Queries on the left, keys on the right, and what each head of the layer sees between them. Only the rows in sight are made. */
import type { Attention } from "../data.js";
import { bdi, h } from "../dom.js";
import { drawMarks, type Mark } from "../marks.js";
import type { Look } from "../styles.js";
import type { Token } from "../tokens.js";
import { runsRightToLeft } from "../tokens.js";
import type { Words } from "../words.js";
import { type LooksPlaces, looksMarks, ROW } from "./looks-marks.js";

export interface ColumnsState {
  readonly attention: Attention;
  readonly heads: readonly { readonly matrix: Float32Array; readonly colour: string }[];
  readonly chosen: readonly number[];
  readonly at: number | null;
  /** What the followed queries look at, per key, in words; null = nothing is followed. */
  readonly amount: ((key: number) => string) | null;
  readonly ofOne: boolean;
  readonly look: Look;
  readonly tallest: number;
}

export interface ColumnsHost {
  point(query: number | null, byKey: boolean): void;
  press(query: number, more: boolean): void;
  release(): void;
}

const WIDEST_NAME = 168;
const FONT = 14;
const SPARE_ROWS = 4;
let made = 0;

export class Columns {
  readonly element = h("div", { part: "columns", class: "columns" });
  readonly #host: ColumnsHost;
  readonly #id = `query${++made}`;
  readonly #canvas = h("canvas", { "aria-hidden": "true" });
  readonly #picture = h("div", { class: "picture" }, this.#canvas);
  readonly #queries = h("div", {
    class: "list queries",
    role: "listbox",
    "aria-multiselectable": "true",
    tabindex: "0",
  });
  readonly #keys = h("div", { class: "list keys", role: "list" });
  readonly #tall = h("div", { class: "tall" }, this.#picture, this.#queries, this.#keys);
  #state: ColumnsState | null = null;
  #places: LooksPlaces | null = null;
  #frame = 0;

  constructor(host: ColumnsHost) {
    this.#host = host;
    this.element.append(this.#tall);
    this.element.addEventListener("scroll", () => {
      this.#frame ||= requestAnimationFrame(() => {
        this.#frame = 0;
        this.#draw();
      });
    });
    const list = this.#queries;
    list.addEventListener("pointermove", (event) => {
      const query = this.#queryOf(event);
      if (event.pointerType !== "touch" && query !== (this.#state?.at ?? null)) host.point(query, false);
    });
    list.addEventListener("pointerleave", () => host.point(null, false));
    list.addEventListener("click", (event) => {
      const query = this.#queryOf(event);
      if (query !== null) host.press(query, true);
    });
    list.addEventListener("keydown", (event) => this.#key(event));
  }

  show(state: ColumnsState, words: Words): void {
    this.#state = state;
    const { attention, tallest } = state;
    const rows = Math.max(attention.queryLength + offsetOf(attention), attention.keyLength);
    const height = Math.min(rows * ROW, tallest);
    this.#tall.style.height = `${rows * ROW}px`;
    this.element.style.height = `${height + 2}px`;
    this.element.classList.toggle("still", rows * ROW <= tallest);
    this.#picture.style.height = `${height}px`;
    this.#picture.style.marginBottom = `${-height}px`;
    this.#queries.setAttribute("aria-label", words.queries(attention.queryLength));
    this.#queries.setAttribute("aria-description", words.textHelp);
    this.#keys.setAttribute("aria-label", words.keys(attention.keyLength));
    this.#draw();
  }

  /** What is in sight, as marks: the picture with the tokens beside it. */
  marks(): Mark[] {
    const state = this.#state;
    const places = this.#places;
    if (!state || !places) return [];
    const { attention, look } = state;
    const token = (given: Token, row: number, x: number, align: "left" | "right"): Mark => {
      const y = (row + 0.5) * ROW - places.top;
      return { is: "text", text: given.label, x, y, align, fill: look.ink, size: FONT };
    };
    const { first, last } = this.#inSight();
    const offset = offsetOf(attention);
    const keys = attention.keyTokens.slice(first, last);
    const queries = attention.queryTokens.slice(Math.max(0, first - offset), Math.max(0, last - offset));
    const strips = places.strip * state.heads.length;
    return [
      ...looksMarks(this.#looks(state), places),
      ...queries.map((each, i) => token(each, Math.max(first, offset) + i, places.left - 8, "right")),
      ...keys.map((each, i) => token(each, first + i, places.right + strips + 8, "left")),
    ];
  }

  get width(): number {
    return this.element.clientWidth;
  }
  get height(): number {
    return this.element.clientHeight;
  }

  #inSight(): { first: number; last: number } {
    const top = this.element.scrollTop;
    return { first: Math.floor(top / ROW), last: Math.ceil((top + this.element.clientHeight) / ROW) };
  }

  /** The followed queries, or all that are in sight. */
  #looks(state: ColumnsState) {
    const { attention, chosen, at, heads, ofOne } = state;
    const followed = chosen.length > 0 ? chosen : at === null ? [] : [at];
    if (followed.length > 0) return { attention, heads, queries: followed, chosen: true, ofOne };
    const { first, last } = this.#inSight();
    const offset = offsetOf(attention);
    const queries: number[] = [];
    for (let query = Math.max(0, first - offset); query < Math.min(attention.queryLength, last - offset); query++)
      queries.push(query);
    return { attention, heads, queries, chosen: false, ofOne };
  }

  #draw(): void {
    const state = this.#state;
    const width = this.element.clientWidth;
    if (!state || width === 0) return;
    const { attention, look, heads } = state;
    const context = this.#canvas.getContext("2d")!;
    context.font = `400 ${FONT}px ${look.font}`;
    const widest = (tokens: readonly Token[]) =>
      Math.ceil(
        Math.min(
          WIDEST_NAME,
          width * 0.3,
          Math.max(36, ...tokens.slice(0, 2000).map(({ label }) => context.measureText(label).width + 18)),
        ),
      );
    const nameOfQuery = widest(attention.queryTokens);
    // Room for the amount beside the name.
    const nameOfKey = Math.min(width * 0.36, widest(attention.keyTokens) + 58);
    const strip = Math.max(2, Math.min(10, Math.floor((width * 0.16) / heads.length)));
    const strips = strip * heads.length;
    const height = this.element.clientHeight;
    const gap = Math.min(320, width - nameOfQuery - nameOfKey - strips);
    const right = nameOfQuery + gap;
    this.#places = {
      left: nameOfQuery,
      right,
      top: this.element.scrollTop,
      height,
      offset: offsetOf(attention),
      strip,
    };
    this.#queries.style.width = `${nameOfQuery}px`;
    this.#keys.style.left = `${right + strips}px`;
    this.#keys.style.width = `${nameOfKey}px`;
    const density = window.devicePixelRatio || 1;
    const drawn = gap + strips;
    this.#canvas.width = Math.round(drawn * density);
    this.#canvas.height = Math.round(height * density);
    this.#canvas.style.left = `${nameOfQuery}px`;
    this.#canvas.style.width = `${drawn}px`;
    this.#canvas.style.height = `${height}px`;
    context.setTransform(density, 0, 0, density, -nameOfQuery * density, 0);
    drawMarks(context, looksMarks(this.#looks(state), this.#places), look.font);
    this.#fill(state);
  }

  /** The names of the rows in sight and a few beside them. */
  #fill(state: ColumnsState): void {
    const { attention, chosen, at, amount } = state;
    const { first, last } = this.#inSight();
    const offset = offsetOf(attention);
    const within = (count: number, shift: number) => {
      const from = Math.max(0, first - SPARE_ROWS - shift);
      const to = Math.min(count, last + SPARE_ROWS - shift);
      return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
    };
    const place = (item: HTMLElement, row: number, token: Token | undefined) => {
      item.style.top = `${row * ROW}px`;
      if (token?.special) item.classList.add("special");
      if (token && runsRightToLeft(token.label)) item.dir = "auto";
      return item;
    };
    const count = attention.queryLength;
    const queries = within(count, offset).map((query) => {
      const token = attention.queryTokens[query];
      const item = h(
        "div",
        {
          class: query === at ? "item at" : "item",
          part: "token",
          role: "option",
          id: `${this.#id}-${query}`,
          "data-query": query,
          "aria-selected": String(chosen.includes(query)),
          "aria-setsize": count,
          "aria-posinset": query + 1,
        },
        bdi(token?.label ?? ""),
      );
      return place(item, query + offset, token);
    });
    const keys = within(attention.keyLength, 0).map((key) => {
      const token = attention.keyTokens[key];
      const told = amount?.(key) ?? "";
      const item = h(
        "div",
        { class: "item", part: "token", role: "listitem", "data-key": key },
        bdi(token?.label ?? ""),
      );
      if (told) item.append(h("span", { class: "amount" }, told));
      return place(item, key, token);
    });
    this.#queries.replaceChildren(...queries);
    this.#keys.replaceChildren(...keys);
    if (at !== null && queries.some(({ id }) => id === `${this.#id}-${at}`))
      this.#queries.setAttribute("aria-activedescendant", `${this.#id}-${at}`);
    else this.#queries.removeAttribute("aria-activedescendant");
  }

  #queryOf(event: Event): number | null {
    const query = (event.target as Element).closest<HTMLElement>("[data-query]")?.dataset.query;
    return query === undefined ? null : Number(query);
  }

  /** Brings a query's row into sight. */
  reveal(query: number): void {
    const attention = this.#state?.attention;
    if (!attention) return;
    const top = (query + offsetOf(attention)) * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW > scrollTop + clientHeight) this.element.scrollTop = top + ROW - clientHeight;
  }

  #key(event: KeyboardEvent): void {
    const state = this.#state;
    if (!state || event.ctrlKey || event.metaKey || event.altKey) return;
    const { at, attention } = state;
    const last = attention.queryLength - 1;
    const moves: Record<string, number> = {
      ArrowUp: at === null ? last : at - 1,
      ArrowDown: at === null ? 0 : at + 1,
      Home: 0,
      End: last,
    };
    const to = moves[event.key];
    if (to !== undefined) {
      const query = Math.max(0, Math.min(last, to));
      this.reveal(query);
      this.#host.point(query, true);
    } else if ((event.key === "Enter" || event.key === " ") && at !== null) this.#host.press(at, true);
    else if (event.key === "Escape") this.#host.release();
    else return;
    event.preventDefault();
  }
}

/** Rows between a text's first key and its first query. */
const offsetOf = ({ queryOffset }: Attention): number => Math.max(0, queryOffset ?? 0);
