/** Shows one chapter at a time: loads it, mounts it, keeps the address, and shows its failure in its place. */
import { createLookback, type Lookback } from "lookback";
import { h } from "../view/dom";
import { type Address, FIRST_CHAPTER, readAddress, writeAddress } from "./address";
import type { ChapterContext, ChapterEntry, MountedChapter } from "./chapter";
import { CHAPTERS } from "./chapters";
import { engineLine } from "./engine-line";
import { failurePanel } from "./failure";
import { buildFrame, type Frame, MESSAGES } from "./frame";
import type { Lang, Theme } from "./state";
import { applyTheme, effectiveTheme, onSystemThemeChange, storedTheme, storeTheme } from "./theme";

const entryOf = (id: string): ChapterEntry | undefined => CHAPTERS.find((entry) => entry.id === id);

export class Shell {
  readonly #host: HTMLElement;
  readonly #content = h("main", { id: "content", tabindex: -1 });
  readonly #live = h("div", { class: "visually-hidden", "aria-live": "polite", id: "live" });
  /** Each chapter's part of the address when it was last read, to come back to. */
  readonly #remembered = new Map<string, URLSearchParams>();
  readonly #heights = new Map<string, number>();
  #theme: Theme = storedTheme();
  #address: Address;
  #place = "";
  #frame: Frame | null = null;
  #engine: Promise<Lookback> | null = null;
  #chapter: MountedChapter | null = null;
  #reading = new AbortController();
  #announcement = 0;

  constructor(host: HTMLElement) {
    this.#host = host;
    this.#address = readAddress(location.hash, navigator.languages);
  }

  /** Settles when the first chapter is there, or has failed. */
  start(): Promise<void> {
    applyTheme(this.#theme);
    onSystemThemeChange(() => this.#repaint());
    // Canvas text is measured and drawn with the page's fonts, so once more when they have come.
    document.fonts.addEventListener("loadingdone", () => this.#chapter?.repaint?.());
    // A chapter is mounted after the browser would have scrolled.
    history.scrollRestoration = "manual";
    window.addEventListener("popstate", () => this.#travel(true));
    this.#buildFrame();
    return this.#open();
  }

  /** To the chapter of the address; on the way back, to the height at which it was left. */
  #travel(back: boolean): void {
    const next = readAddress(location.hash, navigator.languages);
    const { lang, chapter, parameters } = this.#address;
    this.#remembered.set(chapter, parameters);
    this.#address = next;
    if (next.lang !== lang) this.#buildFrame();
    if (next.chapter === chapter && next.lang === lang && this.#chapter?.navigate) {
      this.#chapter.navigate(next.parameters);
      this.#mark();
      return;
    }
    this.#heights.set(chapter, window.scrollY);
    window.scrollTo({ top: 0, behavior: "instant" });
    void this.#open(back && !next.parameters.has("at") ? (this.#heights.get(next.chapter) ?? 0) : 0);
  }

  #link(chapter: string, at?: string): string {
    const here = chapter === this.#address.chapter;
    const known = here ? this.#address.parameters : this.#remembered.get(chapter);
    const parameters = new URLSearchParams(known);
    parameters.delete("at");
    if (at) parameters.set("at", at);
    return writeAddress({ lang: this.#address.lang, chapter, parameters });
  }

  #follow(chapter: string, at?: string): void {
    const other = chapter !== this.#address.chapter;
    history.pushState(null, "", this.#link(chapter, at));
    this.#travel(false);
    if (other) this.#content.focus({ preventScroll: true });
  }

  #chooseLang(lang: Lang): void {
    this.#address = { ...this.#address, lang };
    history.replaceState(history.state, "", writeAddress(this.#address));
    this.#buildFrame();
    this.#host.querySelector<HTMLElement>(".language input:checked")?.focus({ preventScroll: true });
    if (this.#chapter) {
      this.#chapter.translate(lang);
      this.#mark();
    } else void this.#open();
  }

  #chooseTheme(theme: Theme): void {
    this.#theme = theme;
    storeTheme(theme);
    this.#repaint();
  }

  #repaint(): void {
    applyTheme(this.#theme);
    this.#chapter?.repaint?.();
  }

  /** Header, list and foot in the language of the address. The chapter in between stays as it is. */
  #buildFrame(): void {
    const { lang } = this.#address;
    document.documentElement.lang = MESSAGES[lang].htmlLang;
    this.#frame = buildFrame({
      lang,
      theme: this.#theme,
      chooseLang: (next) => this.#chooseLang(next),
      chooseTheme: (next) => this.#chooseTheme(next),
      link: (chapter, at) => this.#link(chapter, at),
      follow: (chapter, at) => this.#follow(chapter, at),
      skip: () => {
        this.#content.scrollIntoView({ behavior: "instant", block: "start" });
        this.#content.focus({ preventScroll: true });
      },
    });
    this.#live.textContent = "";
    if (this.#content.isConnected) {
      for (const old of this.#host.querySelectorAll(":scope > :not(main, #live)")) old.remove();
      this.#content.before(...this.#frame.top);
      this.#content.after(this.#frame.foot);
    } else this.#host.replaceChildren(...this.#frame.top, this.#content, this.#frame.foot, this.#live);
    this.#tellEngine();
  }

  /** The foot says what computes, once that is known. */
  #tellEngine(): void {
    const frame = this.#frame;
    const t = MESSAGES[this.#address.lang];
    this.#engine?.then(
      (lb) => frame?.foot.replaceChildren(engineLine(t, lb)),
      () => {}, // whoever asked for it shows why
    );
  }

  #startEngine(): Promise<Lookback> {
    if (!this.#engine) {
      const starting = createLookback();
      this.#engine = starting;
      starting.catch(() => {
        if (this.#engine === starting) this.#engine = null;
      });
      this.#tellEngine();
    }
    return this.#engine;
  }

  #mark(): void {
    const entry = entryOf(this.#address.chapter);
    const { lang } = this.#address;
    if (entry) {
      document.title = `${entry.title[lang]} · ${MESSAGES[lang].brand}`;
      document.querySelector('meta[name="description"]')?.setAttribute("content", entry.description[lang]);
    }
    this.#frame?.mark(this.#address.chapter, this.#place);
  }

  /** Leaves the chapter that is shown and mounts the one that the address names. */
  async #open(height = 0): Promise<void> {
    this.#reading.abort();
    this.#chapter?.unmount();
    this.#chapter = null;
    const reading = new AbortController();
    this.#reading = reading;
    // An address with a chapter that does not exist is an old link, or a typing error: the first one is shown.
    const entry = entryOf(this.#address.chapter) ?? entryOf(FIRST_CHAPTER);
    if (!entry) throw new Error("there is no first chapter");
    this.#address = { ...this.#address, chapter: entry.id };
    this.#place = "";
    delete this.#host.dataset.ready;
    this.#mark();
    const t = MESSAGES[this.#address.lang];
    const container = h("div", { class: "chapter-place", "data-chapter": entry.id });
    const loading = h("p", { class: "loading", role: "status" }, t.loading);
    this.#content.replaceChildren(loading, container);
    const left = () => reading.signal.aborted;
    const fail = (error: unknown) => {
      if (left()) return;
      this.#chapter?.unmount();
      this.#chapter = null;
      this.#content.replaceChildren(failurePanel(t, error, () => void this.#open()));
    };
    try {
      const { chapter } = await entry.load();
      if (left()) return;
      const mounted = await chapter.mount(container, this.#context(entry, reading.signal, fail));
      if (left()) return mounted.unmount();
      loading.remove();
      this.#chapter = mounted;
      this.#mark();
      if (height > 0) window.scrollTo({ top: height, behavior: "instant" });
      this.#host.dataset.ready = entry.id;
      performance.mark("chapter-ready", { detail: entry.id });
    } catch (error) {
      fail(error);
    }
  }

  #context(entry: ChapterEntry, signal: AbortSignal, fail: (error: unknown) => void): ChapterContext {
    const address = (parameters: URLSearchParams) => ({ ...this.#address, chapter: entry.id, parameters });
    return {
      lang: this.#address.lang,
      parameters: new URLSearchParams(this.#address.parameters),
      signal,
      theme: () => effectiveTheme(this.#theme),
      engine: () => this.#startEngine(),
      share: (parameters, how = "replace") => {
        if (signal.aborted) return;
        this.#address = address(parameters);
        this.#remembered.set(entry.id, new URLSearchParams(parameters));
        const hash = writeAddress(this.#address);
        if (how === "push") history.pushState(null, "", hash);
        else history.replaceState(history.state, "", hash);
        this.#mark();
      },
      link: (parameters) => writeAddress(address(parameters)),
      place: (at) => {
        if (signal.aborted || at === this.#place) return;
        this.#place = at;
        this.#mark();
      },
      announce: (text) => this.#announce(text),
      fail,
    };
  }

  #announce(text: string): void {
    clearTimeout(this.#announcement);
    // Only where the pointer or the cursor comes to rest, or the reader drowns in numbers.
    this.#announcement = window.setTimeout(() => {
      this.#live.textContent = text;
    }, 180);
  }
}
