/** The chapter's state: the model, the tree of texts, what is being written, and which token is looked at. */
import type { FinishReason } from "lookback/model";
import { WriterClient } from "./client";
import { sourceName } from "./models";
import type { FromWorker, Look, ModelFacts, Sampling, Source } from "./protocol";
import { PACES, type Settings } from "./settings";
import { type Candidate, type Token, TokenTree } from "./tree";

export type Phase = "no-model" | "loading" | "ready" | "reading" | "writing" | "paused" | "ended";

export interface WriterState {
  readonly phase: Phase;
  readonly settings: Settings;
  readonly model: ModelFacts | null;
  /** What a command calls the model. */
  readonly modelName: string;
  /** 0 … 1, while a model is being loaded. */
  readonly loaded: number;
  readonly finish: FinishReason | null;
  readonly tokensPerSecond: number;
  readonly modelError: string | null;
  readonly error: string | null;
  /** Pointed at, and kept by a click. */
  readonly pointed: Token | null;
  readonly kept: Token | null;
}

export class Writer {
  readonly tree = new TokenTree();
  readonly #client: WriterClient;
  readonly #changed: () => void;
  #state: WriterState;
  /** The text under way in the worker; it is old once the tree's text, or the way to choose, is another. */
  #run = 0;
  #isOpen = false;
  /** Models that were asked for: an older one is no longer wanted. */
  #loads = 0;
  /** The prompt that the tree's text began with. */
  #given: string | null = null;

  constructor(settings: Settings, changed: () => void) {
    this.#changed = changed;
    this.#state = {
      phase: "no-model",
      settings,
      model: null,
      modelName: "",
      loaded: 0,
      finish: null,
      tokensPerSecond: 0,
      modelError: null,
      error: null,
      pointed: null,
      kept: null,
    };
    this.#client = new WriterClient(
      (news) => this.#hear(news),
      (message) => this.#set({ error: message }),
    );
    this.#client.order({ order: "attention", look: settings.look });
  }

  get state(): WriterState {
    return this.#state;
  }

  /** The token that is explained. */
  get shown(): Token | null {
    return this.#state.pointed ?? this.#state.kept ?? this.tree.end;
  }

  /** Whether the text in the field is the one that was given. */
  get isGiven(): boolean {
    return this.#given === this.#state.settings.prompt;
  }

  end(): void {
    this.#client.end();
  }

  async load(source: Source): Promise<void> {
    this.#leave();
    this.tree.clear();
    this.#given = null;
    const load = ++this.#loads;
    const modelName = sourceName(source);
    const nothing = { modelError: null, error: null, kept: null, pointed: null };
    this.#set({ phase: "loading", model: null, modelName, loaded: 0, ...nothing });
    try {
      const model = await this.#client.ask("load", { source });
      if (load !== this.#loads) return;
      const { look } = this.#state.settings;
      const exists = (value: number | null, count: number) => (value !== null && value < count ? value : null);
      this.#set({ phase: "ready", model, finish: null, tokensPerSecond: 0 });
      this.look({ layer: exists(look.layer, model.layers), head: exists(look.head, model.heads) });
    } catch (error) {
      if (load === this.#loads) this.#set({ phase: "no-model", modelName: "", modelError: messageOf(error) });
    }
  }

  change(settings: Partial<Omit<Settings, "sampling" | "look">>): void {
    if (settings.maxTokens !== undefined) this.#leave();
    this.#set({ settings: { ...this.#state.settings, ...settings } });
    if (settings.pace !== undefined && this.#state.phase === "writing")
      this.#client.order({ order: "go", pace: PACES[settings.pace] });
  }

  sample(sampling: Partial<Sampling>): void {
    this.#leave();
    const { settings } = this.#state;
    this.#set({ settings: { ...settings, sampling: { ...settings.sampling, ...sampling } } });
  }

  /** Whose attention is shown. */
  look(look: Look): void {
    this.#client.order({ order: "attention", look });
    this.tree.forgetRows();
    this.#set({ settings: { ...this.#state.settings, look } });
    void this.#fillRows();
  }

  /** Writes on, or begins. */
  async write(): Promise<void> {
    if (!(await this.#open())) return;
    this.#set({ phase: "writing" });
    this.#client.order({ order: "go", pace: PACES[this.#state.settings.pace] });
  }

  async step(): Promise<void> {
    if (!(await this.#open())) return;
    this.#set({ phase: "writing" });
    this.#client.order({ order: "step" });
  }

  pause(): void {
    this.#client.order({ order: "pause" });
    this.#set({ phase: "paused" });
  }

  /** The text ends with this token; what follows it stays among the branches. */
  rewind(to: Token): void {
    this.#leave();
    this.tree.rewind(to);
    this.#set({ kept: null, pointed: null, error: null });
    void this.#fillRows();
  }

  instead(of: Token, candidate: Candidate): void {
    this.#leave();
    this.tree.instead(of, candidate);
    this.#set({ kept: null, pointed: null, error: null });
    void this.#fillRows();
  }

  point(token: Token | null): void {
    if (token !== this.#state.pointed) this.#set({ pointed: token });
  }

  keep(token: Token | null): void {
    this.#set({ kept: token === this.#state.kept ? null : token });
  }

  /** The worker's text is no longer ours: the next one begins where ours ends. */
  #leave(): void {
    if (!this.#isOpen && this.#state.phase !== "ended") return;
    this.#client.order({ order: "pause" });
    this.#isOpen = false;
    this.#run++;
    this.#set({ phase: "paused", finish: null });
  }

  /** Sees to it that the worker is ready to go on where our text ends. */
  async #open(): Promise<boolean> {
    const { model, settings, phase } = this.#state;
    if (!model || phase === "reading" || phase === "loading") return false;
    if (!this.isGiven || !this.tree.end) {
      this.#leave();
      if (settings.prompt === "") return false;
      this.#set({ phase: "reading", error: null });
      try {
        const { ids, texts, special } = await this.#client.ask("read", { text: settings.prompt });
        this.tree.give(ids.map((id, at) => ({ id, text: texts[at] ?? "", special: at < special })));
        this.#given = settings.prompt;
      } catch (error) {
        this.#set({ phase: "ready", error: messageOf(error) });
        return false;
      }
      this.#set({ kept: null, pointed: null });
      void this.#fillRows();
    }
    if (this.#isOpen && this.#state.phase !== "ended") return true;
    this.#run++;
    this.#isOpen = true;
    const { sampling, maxTokens } = this.#state.settings;
    const ids = this.tree.path().map(({ id }) => id);
    this.#client.order({ order: "begin", run: this.#run, ids, sampling, maxTokens });
    this.#set({ finish: null, error: null, kept: null });
    return true;
  }

  /** Asks how the text's tokens look, where that is not known. */
  async #fillRows(): Promise<void> {
    const path = this.tree.path();
    const { look } = this.#state.settings;
    if (path.length < 2 || path.slice(1).every(({ row }) => row)) return;
    try {
      const rows = await this.#client.ask("look", { ids: path.map(({ id }) => id), look });
      if (look !== this.#state.settings.look) return;
      path.forEach((token, at) => {
        if (at > 0) token.row = rows.subarray((at * (at - 1)) / 2, (at * (at + 1)) / 2);
      });
      this.#set({});
    } catch (error) {
      this.#set({ error: messageOf(error) });
    }
  }

  #hear(news: Exclude<FromWorker, { type: "answer" | "failed" }>): void {
    if (news.type === "loading") {
      this.#set({ loaded: news.loaded / news.total });
      return;
    }
    if (news.run !== this.#run || !this.#isOpen) return;
    if (news.type === "written") {
      const { layer, head } = this.#state.settings.look;
      // Other layers or heads may have been chosen since.
      const fits = news.look.layer === layer && news.look.head === head;
      for (const token of news.tokens) this.tree.append(fits ? token : { ...token, row: null });
      this.#set({ tokensPerSecond: news.tokensPerSecond });
    } else if (news.type === "paused") {
      this.#set({ phase: "paused" });
      void this.#fillRows();
    } else if (news.type === "ended") {
      this.#set({ phase: "ended", finish: news.finish });
      void this.#fillRows();
    } else {
      this.#isOpen = false;
      this.#set({ phase: "paused", error: news.message });
    }
  }

  #set(patch: Partial<WriterState>): void {
    this.#state = { ...this.#state, ...patch };
    this.#changed();
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
