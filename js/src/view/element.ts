/** What all elements have in common: data, language, theme, messages, events, and one drawing per change. */
import { LookbackError } from "lookback";
import { COLOR_SCALES, type ColorScale } from "./colours.js";
import type { Attention, HeadChoice } from "./data.js";
import { h, languageOf } from "./dom.js";
import type { CellDetail, HeadDetail } from "./events.js";
import { followersOf, join, leaderOf, leave, partnersOf } from "./links.js";
import { Message } from "./message.js";
import { refuse, show } from "./numbers.js";
import { type ReadOptions, readAttention } from "./read.js";
import { loadJson, parseJson } from "./source.js";
import { type Look, readLook, sheetOf } from "./styles.js";
import type { TokenFormat } from "./tokens.js";
import { inTurn } from "./turns.js";
import { type Words, wordsFor } from "./words.js";

/** Under Node.js there are no elements: the classes exist, and are never made. */
const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement;

export abstract class AttentionElement extends Base {
  static observedAttributes: string[] = [
    "src",
    "for",
    "layer",
    "head",
    "batch",
    "hide-special",
    "token-format",
    "color-scale",
    "theme",
    "lang",
    "label",
  ];

  readonly #root: ShadowRoot;
  readonly #content = h("div", { part: "content", class: "content" });
  readonly #message = new Message();
  readonly #live = h("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  readonly #probe = h("div", { id: "probe", "aria-hidden": "true" });
  #input: unknown;
  #read: Attention | null = null;
  #shown: Attention | null = null;
  #stale = true;
  #pending: Promise<void> | null = null;
  #loading: AbortController | null = null;
  /** That was drawn for. */
  #width = -1;
  #look: Look | null = null;
  #language: MutationObserver | null = null;
  #resize: ResizeObserver | null = null;
  #readersChoice = false; // layer and head were chosen among those of the data of then; others may not have them

  constructor() {
    super();
    this.#root = this.attachShadow({ mode: "open" });
    this.#root.adoptedStyleSheets = [sheetOf(this.constructor as typeof AttentionElement)];
    this.#root.append(this.#probe, this.#message.element, this.#content, this.#live);
    // The theme changes without an event; a colour that begins to change tells of it.
    this.#probe.addEventListener("transitionrun", () => {
      this.#look = null;
      this.requestUpdate();
    });
  }

  /** Style rules of its own. */
  static styles = "";

  /** Draws `attention` into the content; called once for all changes of a moment, only when there is something to draw. */
  protected abstract update(attention: Attention): void;

  /** What is drawn goes into it. */
  protected get content(): HTMLElement {
    return this.#content;
  }

  /** Everything that `readAttention` takes. */
  get data(): unknown {
    return this.#input;
  }
  set data(input: unknown) {
    this.#loading?.abort();
    this.#loading = null;
    this.#setInput(input);
  }

  /** One more step of `model.generate` with weights; the first one may come before any data, or after `{ tokens }` of the prompt. */
  appendStep(step: unknown): void {
    const input = this.#input as { tokens?: unknown; steps?: unknown[] } | undefined;
    this.data = { ...input, steps: [...(input?.steps ?? []), step] };
  }

  /** What was read and is shown; null before there are data, and when they are bad. */
  get attention(): Attention | null {
    try {
      this.#readData();
    } catch {
      // The picture says what is wrong.
      return null;
    }
    return this.#shown;
  }

  /** Place of the layer in the data, from 0. */
  get layer(): number {
    return this.numberAttribute("layer", 0);
  }
  set layer(layer: number) {
    this.setAttribute("layer", String(layer));
  }

  /** Place of the head in its layer, from 0; several, as in "0,3", are averaged; 'mean' is the mean of all. */
  get head(): HeadChoice {
    const head = this.getAttribute("head") ?? "0";
    if (head === "mean") return head;
    return head.includes(",") ? head.split(",").map(Number) : this.numberAttribute("head", 0);
  }
  set head(head: HeadChoice) {
    this.setAttribute("head", String(head));
  }

  get batch(): number {
    return this.numberAttribute("batch", 0);
  }
  set batch(batch: number) {
    this.setAttribute("batch", String(batch));
  }

  get src(): string | null {
    return this.getAttribute("src");
  }
  set src(address: string | null) {
    this.#reflect("src", address);
  }

  get hideSpecial(): boolean {
    return this.hasAttribute("hide-special");
  }
  set hideSpecial(hide: boolean) {
    this.toggleAttribute("hide-special", hide);
  }

  get tokenFormat(): TokenFormat {
    return (this.getAttribute("token-format") ?? "auto") as TokenFormat;
  }
  set tokenFormat(format: TokenFormat) {
    this.setAttribute("token-format", format);
  }

  get colorScale(): ColorScale {
    const name = this.getAttribute("color-scale") ?? "blues";
    return this.choice("color-scale", name, COLOR_SCALES);
  }
  set colorScale(scale: ColorScale) {
    this.setAttribute("color-scale", scale);
  }

  /** 'light', 'dark', or as the page has it. */
  get theme(): "light" | "dark" | "auto" {
    const theme = this.getAttribute("theme");
    return theme === "light" || theme === "dark" ? theme : "auto";
  }
  set theme(theme: "light" | "dark" | "auto") {
    this.setAttribute("theme", theme);
  }

  /** What the picture is called, for those who hear it. */
  get label(): string | null {
    return this.getAttribute("label");
  }
  set label(label: string | null) {
    this.#reflect("label", label);
  }

  /** The id of an element whose data this one shows, too, and whose layer, head and pointer it follows, as that one does its. */
  get htmlFor(): string {
    return this.getAttribute("for") ?? "";
  }
  set htmlFor(id: string) {
    this.setAttribute("for", id);
  }

  /** Settles when all that has been asked for so far is drawn. */
  get updated(): Promise<void> {
    return this.#pending ?? Promise.resolve();
  }

  connectedCallback(): void {
    this.#resize = new ResizeObserver(() => {
      if (this.clientWidth === this.#width) return;
      requestAnimationFrame(() => this.requestUpdate()); // an observer must not change sizes while it is told of some
    });
    this.#resize.observe(this);
    this.#language = new MutationObserver(() => this.requestUpdate());
    this.#language.observe(document.documentElement, { attributes: true, attributeFilter: ["lang"] });
    // A property that was set before the class was known hides the accessor.
    for (const name of ["data", "layer", "head"] as const)
      if (Object.hasOwn(this, name)) {
        const value: unknown = this[name];
        Reflect.deleteProperty(this, name);
        Reflect.set(this, name, value);
      }
    join(this);
    if (this.#input === undefined) this.#readInline();
    this.#takeOver();
    this.#handOn();
    this.requestUpdate();
  }

  disconnectedCallback(): void {
    leave(this);
    this.#resize?.disconnect();
    this.#language?.disconnect();
    this.#loading?.abort();
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (before === after) return;
    if (name === "src" && after !== null) void this.#load(after);
    if (name === "for") this.#takeOver();
    if (name === "batch" || name === "token-format") this.#stale = true;
    if (name === "hide-special") this.#shown = null;
    this.requestUpdate();
  }

  /** Understands what was given; throws where it cannot. */
  protected read(input: unknown, options: ReadOptions): Attention {
    return readAttention(input, options);
  }

  /** Something that `read` depends on has changed. */
  protected readAgain(): void {
    this.#stale = true;
    this.requestUpdate();
  }

  /** Draws soon, once for all that changes until then. */
  requestUpdate(): void {
    if (!this.isConnected) return;
    this.#pending ??= Promise.resolve().then(() =>
      inTurn(() => {
        this.#pending = null;
        this.#refresh();
      }),
    );
  }

  /** Draws what has been asked for at once. */
  protected flush(): void {
    if (this.#pending) this.#refresh();
  }

  protected get words(): Words {
    return wordsFor(languageOf(this));
  }

  /** Colours and font as the page and the theme make them. */
  protected get look(): Look {
    if (this.#look) return this.#look;
    this.#look = readLook(this.#probe, this);
    return this.#look;
  }

  /** The attribute as a number; what is none is said. */
  protected numberAttribute(name: string, fallback: number): number {
    const text = this.getAttribute(name);
    if (text === null || text.trim() === "") return fallback;
    const number = Number(text);
    return Number.isFinite(number) ? number : refuse(`${name} must be a number; received ${show(text)}.`);
  }

  protected choice<T extends string>(name: string, value: string, accepted: readonly T[]): T {
    return (accepted as readonly string[]).includes(value)
      ? (value as T)
      : refuse(`${name} must be one of ${accepted.join(", ")}; received ${show(value)}.`);
  }

  /** The layer and head that are shown, after a look at whether they are there. */
  protected selection(attention: Attention): { layer: number; head: HeadChoice } {
    if (this.#readersChoice && attention.missing(this.layer, this.head)) {
      this.#readersChoice = false;
      for (const choice of ["layer", "head"]) this.removeAttribute(choice);
    }
    const { layer, head } = this;
    const missing = attention.missing(layer, head);
    if (missing) refuse(missing);
    return { layer, head };
  }

  protected announce(text: string): void {
    this.#live.textContent = text;
  }

  /** Tells the page and the elements that show the same; the event leaves shadow trees. */
  protected emit(name: "attention-hover" | "attention-select", detail: CellDetail | null): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
    for (const partner of this.#partners()) partner.follow(detail, name === "attention-select" && detail !== null);
  }

  /** A reader chose a layer and head: they are shown, here and by the elements that show the same. */
  protected chooseHead(layer: number, head: HeadChoice): void {
    for (const element of [this, ...this.#partners()]) {
      element.layer = layer;
      element.head = head;
      element.#readersChoice = true;
    }
    const detail: HeadDetail = { layer, head };
    this.dispatchEvent(new CustomEvent("attention-head", { detail, bubbles: true, composed: true }));
  }

  /** Another element's reader points at a pair, or locks it; null = no longer. No event comes of it. */
  protected follow(_detail: CellDetail | null, _locked: boolean): void {}

  #partners(): AttentionElement[] {
    return partnersOf(this).filter((partner) => partner instanceof AttentionElement);
  }

  /** The data of the element it shows, if that has any yet. */
  #takeOver(): void {
    const leader = leaderOf(this);
    if (leader instanceof AttentionElement && leader.#input !== undefined) this.data = leader.#input;
  }

  #handOn(): void {
    if (this.#input === undefined) return;
    for (const follower of followersOf(this))
      if (follower instanceof AttentionElement && follower.#input !== this.#input) follower.data = this.#input;
  }

  #reflect(name: string, value: string | null): void {
    if (value === null) this.removeAttribute(name);
    else this.setAttribute(name, value);
  }

  #setInput(input: unknown): void {
    this.#input = input;
    this.#stale = true;
    this.#message.forget();
    this.#handOn();
    this.requestUpdate();
  }

  #readData(): void {
    if (this.#stale && this.#input !== undefined) {
      this.#read = null;
      this.#shown = null;
      this.#read = this.read(this.#input, { batch: this.batch, tokenFormat: this.tokenFormat });
      this.#stale = false;
    }
    this.#shown ??= this.hideSpecial ? (this.#read?.withoutSpecial() ?? null) : this.#read;
  }

  #refresh(): void {
    if (!this.isConnected) return;
    try {
      if (this.#input === undefined) {
        if (!this.#message.isFailure) this.#say(this.#loading ? this.words.loading : this.words.empty);
        return;
      }
      this.#readData();
      const attention = this.#shown;
      if (!attention) return;
      if (attention.queryLength === 0 || attention.keyLength === 0)
        refuse("all tokens are special ones, and hide-special hides them.");
      this.#message.hide();
      this.#content.hidden = false;
      this.#width = this.clientWidth;
      this.update(attention);
      this.#message.forget();
    } catch (error) {
      this.#fail(error);
    }
  }

  #say(text: string): void {
    this.#content.hidden = true;
    this.#message.say(text);
  }

  #fail(error: unknown): void {
    const message = this.#message.fail(error, this.words);
    this.#content.hidden = true;
    if (message !== null) this.dispatchEvent(new ErrorEvent("error", { error, message }));
  }

  /** The data as JSON between the tags. */
  #readInline(): void {
    const text = this.querySelector('script[type="application/json"]')?.textContent;
    if (text === undefined || text === null || this.src !== null) return;
    try {
      this.#setInput(parseJson(text));
    } catch (error) {
      this.#fail(
        new LookbackError("invalid-attention", `the JSON between the tags cannot be read: ${(error as Error).message}`),
      );
    }
  }

  async #load(address: string): Promise<void> {
    this.#loading?.abort();
    const loading = new AbortController();
    this.#loading = loading;
    this.#input = undefined;
    this.#message.forget();
    try {
      const input = await loadJson(new URL(address, document.baseURI), loading.signal);
      if (loading.signal.aborted) return;
      this.#loading = null;
      this.#setInput(input);
    } catch (error) {
      if (!loading.signal.aborted) this.#fail(error);
    }
  }
}
