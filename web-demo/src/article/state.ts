/** What the reader has chosen; everything in the article follows from it. */
import type { Lang } from "../app/state";

export type MaskChoice = "causal" | "off" | "inverted";
export type Projection = "q" | "k" | "v";

export interface State {
  readonly lang: Lang;
  /** The sentence that is read, and the one that cross-attention looks into. */
  readonly text: string;
  readonly memory: string;
  readonly mask: MaskChoice;
  /** The token whose look the opening picture draws. */
  readonly query: number;
  /** Which of the three projections chapter 2 spells out. */
  readonly projection: Projection;
  readonly heads: number;
  /** Whether the cross-attention chapter also asks for a causal mask. */
  readonly crossCausal: boolean;
}

export const SENTENCES: Record<Lang, { text: string; memory: string }> = {
  en: { text: "I want some tea", memory: "我想喝杯热茶" },
  zh: { text: "我想喝茶", memory: "I would like some hot tea" },
};

export const MAX_HEADS = 8;

export function initialState(lang: Lang): State {
  return {
    lang,
    ...SENTENCES[lang],
    mask: "causal",
    query: 2,
    projection: "q",
    heads: 2,
    crossCausal: false,
  };
}

/** The other language, with its own sentences unless the reader wrote some. */
export function inLanguage(state: State, lang: Lang): State {
  const old = SENTENCES[state.lang];
  const next = SENTENCES[lang];
  return {
    ...state,
    lang,
    text: state.text === old.text ? next.text : state.text,
    memory: state.memory === old.memory ? next.memory : state.memory,
  };
}

type Listener = (state: State, previous: State) => void;

export class Store {
  #state: State;
  readonly #listeners = new Set<Listener>();

  constructor(state: State) {
    this.#state = state;
  }

  get state(): State {
    return this.#state;
  }

  set(patch: Partial<State>): void {
    const previous = this.#state;
    this.#state = { ...previous, ...patch };
    for (const listener of this.#listeners) listener(this.#state, previous);
  }

  subscribe(listener: Listener): void {
    this.#listeners.add(listener);
  }
}
