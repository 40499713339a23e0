/** The frame around the chapters: header, list of chapters, live region. Built anew for each language. */
import { closing } from "../chapters/closing";
import { cross } from "../chapters/cross";
import { heads } from "../chapters/heads";
import { hero } from "../chapters/hero";
import { mask } from "../chapters/mask";
import { output } from "../chapters/output";
import { projections } from "../chapters/projections";
import { scores } from "../chapters/scores";
import { words } from "../chapters/words";
import type { Lookback } from "../engine/engine";
import { en, type Messages } from "../locales/en";
import { zh } from "../locales/zh";
import { segmented } from "../view/controls";
import { h } from "../view/dom";
import { type Palette, paletteFor } from "../view/palette";
import { writeAddress } from "./address";
import { type App, type Chapter, type MountedChapter, type Results, resultsOf } from "./app";
import { inLanguage, type Lang, type Store, type Theme } from "./state";
import { effectiveTheme } from "./theme";

/** In reading order; a new chapter is a file and a line here. */
const CHAPTERS: readonly Chapter[] = [hero, words, projections, scores, mask, output, heads, cross, closing];

export const MESSAGES: Record<Lang, Messages> = { en, zh };
const NEXT_THEME: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
const THEME_ICON: Record<Theme, string> = { auto: "◐", light: "☀", dark: "☾" };

export class Page {
  readonly #host: HTMLElement;
  readonly #lb: Lookback;
  readonly #store: Store;
  readonly #live = h("div", { class: "visually-hidden", "aria-live": "polite", id: "live" });
  #chapters: MountedChapter[] = [];
  #palette: Palette | null = null;
  #results: Results | null = null;
  #announcement = 0;

  constructor(host: HTMLElement, lb: Lookback, store: Store) {
    this.#host = host;
    this.#lb = lb;
    this.#store = store;
  }

  /** Builds everything in the language of the state. */
  build(): void {
    const { lang } = this.#store.state;
    const t = MESSAGES[lang];
    document.documentElement.lang = t.htmlLang;
    document.title = `${t.title} · ${t.brand}`;
    document.querySelector('meta[name="description"]')?.setAttribute("content", t.description);
    const app: App = {
      lb: this.#lb,
      store: this.#store,
      t,
      figures: {
        words: t.figure,
        palette: () => this.#currentPalette(),
        announce: (text) => this.#announce(text),
      },
    };
    this.#chapters = CHAPTERS.map((chapter) => chapter.mount(app));
    this.#host.replaceChildren(
      h("a", { class: "skip", href: "#chapter-start", onclick: (event) => this.#skip(event) }, t.skip),
      this.#header(t),
      this.#contents(t),
      h("main", { id: "article", tabindex: -1 }, ...this.#chapters.map((chapter) => chapter.element)),
      this.#live,
    );
    this.#live.textContent = "";
    this.update();
  }

  /** Calculates what the state asks for and lets every chapter show it. */
  update(): void {
    this.#results = resultsOf(this.#lb, this.#store.state, this.#results);
    for (const chapter of this.#chapters) chapter.update(this.#results);
  }

  /** New colours or fonts, same numbers. */
  repaint(): void {
    this.#palette = null;
    for (const chapter of this.#chapters) for (const figure of chapter.figures) figure.draw();
  }

  goTo(id: string, smooth: boolean): void {
    const section = document.getElementById(`chapter-${id}`);
    if (!section) return;
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    section.scrollIntoView({ behavior: smooth && !still ? "smooth" : "instant", block: "start" });
    section.querySelector<HTMLElement>("h1, h2")?.focus({ preventScroll: true });
  }

  #currentPalette(): Palette {
    this.#palette ??= paletteFor(effectiveTheme(this.#store.state.theme));
    return this.#palette;
  }

  #announce(text: string): void {
    clearTimeout(this.#announcement);
    // Only where the pointer or the cursor comes to rest, or the reader drowns in numbers.
    this.#announcement = window.setTimeout(() => {
      this.#live.textContent = text;
    }, 180);
  }

  #skip(event: Event): void {
    event.preventDefault();
    this.goTo("start", false);
  }

  #header(t: Messages): HTMLElement {
    const { lang, theme } = this.#store.state;
    const language = segmented<Lang>(
      t.language,
      [
        { value: "en", label: "English" },
        { value: "zh", label: "中文" },
      ],
      (next) => this.#store.set(inLanguage(this.#store.state, next)),
      "language",
    );
    language.show(lang);
    for (const label of language.element.querySelectorAll<HTMLElement>("[data-value]"))
      label.lang = label.dataset.value === "zh" ? "zh-CN" : "en";
    const themeButton = h("button", { type: "button", class: "theme", "aria-label": t.theme.label(t.theme[theme]) });
    const icon = (now: Theme) => {
      themeButton.textContent = THEME_ICON[now];
      themeButton.title = t.theme[now];
      themeButton.setAttribute("aria-label", t.theme.label(t.theme[now]));
    };
    icon(theme);
    themeButton.addEventListener("click", () => {
      const next = NEXT_THEME[this.#store.state.theme];
      this.#store.set({ theme: next });
      icon(next);
    });
    return h(
      "header",
      { class: "bar" },
      h(
        "a",
        { class: "brand", href: writeAddress(this.#store.state), onclick: (e) => this.#skip(e) },
        h("span", { class: "mark", "aria-hidden": "true" }),
        t.brand,
      ),
      h(
        "p",
        {
          class: "engine",
          title: t.engine.label,
          "data-variant": this.#lb.variant,
          "data-fused": String(this.#lb.fused),
        },
        h("span", { class: "dot", "aria-hidden": "true" }),
        h("span", {}, `${t.engine.variant(this.#lb.variant)} · ${this.#lb.fused ? t.engine.fused : t.engine.unfused}`),
      ),
      language.element,
      themeButton,
    );
  }

  #contents(t: Messages): HTMLElement {
    const items = CHAPTERS.filter((chapter) => chapter.nav).map((chapter) => {
      const link = h(
        "a",
        { href: writeAddress(this.#store.state, chapter.id), "data-at": chapter.id },
        chapter.nav?.(t) ?? "",
      );
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        history.replaceState(null, "", writeAddress(this.#store.state, chapter.id));
        this.goTo(chapter.id, true);
      });
      return h("li", {}, link);
    });
    const nav = h("nav", { class: "contents", "aria-label": t.contents }, h("ol", {}, ...items));
    const seen = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting) continue;
          const id = entry.target.id.replace("chapter-", "");
          for (const link of nav.querySelectorAll("a"))
            if (link.dataset.at === id) link.setAttribute("aria-current", "true");
            else link.removeAttribute("aria-current");
        }
      },
      { rootMargin: "-30% 0px -60% 0px" },
    );
    for (const chapter of this.#chapters) seen.observe(chapter.element);
    return nav;
  }
}
