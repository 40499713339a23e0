/** The sections of the article and the list of them. Built anew for each language. */
import type { ChapterContext } from "../app/chapter";
import { MESSAGES as SHARED } from "../app/frame";
import type { Lang } from "../app/state";
import type { Lookback } from "../engine/engine";
import { h } from "../view/dom";
import { type Palette, paletteFor } from "../view/palette";
import { writeChoices } from "./address";
import { type App, type Messages, type MountedSection, type Results, resultsOf, type Section } from "./app";
import { closing } from "./closing";
import { cross } from "./cross";
import { heads } from "./heads";
import { hero } from "./hero";
import { en } from "./locales/en";
import { zh } from "./locales/zh";
import { mask } from "./mask";
import { output } from "./output";
import { projections } from "./projections";
import { scores } from "./scores";
import type { Store } from "./state";
import { words } from "./words";

/** In reading order; a new section is a file and a line here. */
const SECTIONS: readonly Section[] = [hero, words, projections, scores, mask, output, heads, cross, closing];

/** From the section on heads on, the list of chapters says that many heads are being read. */
const MANY_HEADS = SECTIONS.slice(SECTIONS.indexOf(heads)).map(({ id }) => id);

const MESSAGES: Readonly<Record<Lang, Messages>> = { en: { ...SHARED.en, ...en }, zh: { ...SHARED.zh, ...zh } };

export class Page {
  readonly #host: HTMLElement;
  readonly #lb: Lookback;
  readonly #store: Store;
  readonly #context: ChapterContext;
  #sections: MountedSection[] = [];
  #seen: IntersectionObserver | null = null;
  #palette: Palette | null = null;
  #results: Results | null = null;

  constructor(host: HTMLElement, lb: Lookback, store: Store, context: ChapterContext) {
    this.#host = host;
    this.#lb = lb;
    this.#store = store;
    this.#context = context;
  }

  /** Builds everything in the language of the state. */
  build(): void {
    const t = MESSAGES[this.#store.state.lang];
    const app: App = {
      lb: this.#lb,
      store: this.#store,
      t,
      figures: {
        words: t.figure,
        palette: () => this.#currentPalette(),
        announce: (text) => this.#context.announce(text),
      },
    };
    this.#sections = SECTIONS.map((section) => section.mount(app));
    this.#host.replaceChildren(
      this.#contents(t),
      h("div", { id: "article", class: "column" }, ...this.#sections.map((section) => section.element)),
    );
    this.update();
  }

  /** Stops watching what is being read. */
  leave(): void {
    this.#seen?.disconnect();
  }

  /** Calculates what the state asks for and lets every section show it. */
  update(): void {
    this.#results = resultsOf(this.#lb, this.#store.state, this.#results);
    for (const section of this.#sections) section.update(this.#results);
  }

  /** New colours or fonts, same numbers. */
  repaint(): void {
    this.#palette = null;
    for (const section of this.#sections) for (const figure of section.figures) figure.draw();
  }

  goTo(id: string, smooth: boolean): void {
    const section = document.getElementById(`chapter-${id}`);
    if (!section) return;
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    section.scrollIntoView({ behavior: smooth && !still ? "smooth" : "instant", block: "start" });
    section.querySelector<HTMLElement>("h1, h2")?.focus({ preventScroll: true });
  }

  #currentPalette(): Palette {
    this.#palette ??= paletteFor(this.#context.theme());
    return this.#palette;
  }

  #contents(t: Messages): HTMLElement {
    const items = SECTIONS.filter((section) => section.nav).map(({ id, nav }) => {
      const here = () => writeChoices(this.#store.state, id);
      const link = h("a", { href: this.#context.link(here()), "data-at": id }, nav?.(t) ?? "");
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        this.#context.share(here());
        this.goTo(id, true);
      });
      return h("li", {}, link);
    });
    const nav = h("nav", { class: "contents", "aria-label": t.sections }, h("ol", {}, ...items));
    this.#seen?.disconnect();
    this.#seen = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting) continue;
          const id = entry.target.id.replace("chapter-", "");
          this.#context.place(MANY_HEADS.includes(id) ? heads.id : "");
          for (const link of nav.querySelectorAll("a"))
            if (link.dataset.at === id) link.setAttribute("aria-current", "true");
            else link.removeAttribute("aria-current");
        }
      },
      { rootMargin: "-30% 0px -60% 0px" },
    );
    for (const section of this.#sections) this.#seen.observe(section.element);
    return nav;
  }
}
