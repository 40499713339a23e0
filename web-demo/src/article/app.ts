/** What the sections of the article are given and what they give back. */
import { type Cheater, cheat } from "../engine/cheater";
import { tokenize } from "../engine/embed";
import type { Lookback } from "../engine/engine";
import { type Cross, cross, type MultiHead, multiHead, type Outcome } from "../engine/heads";
import { type Story, tellStory } from "../engine/story";
import type { Messages as Shared } from "../locales/en";
import type { FigureContext, FigureView } from "../view/figure";
import type { ArticleMessages } from "./locales/en";
import type { State, Store } from "./state";

export type Messages = Shared & ArticleMessages;

export interface Results {
  readonly state: State;
  readonly story: Story;
  readonly multi: Outcome<MultiHead>;
  readonly cross: Outcome<Cross>;
  readonly cheater: Cheater;
}

export interface App {
  readonly lb: Lookback;
  readonly store: Store;
  readonly t: Messages;
  readonly figures: FigureContext;
}

export interface MountedSection {
  readonly element: HTMLElement;
  /** Figures to redraw when the theme or the fonts change. */
  readonly figures: readonly FigureView[];
  update(results: Results): void;
}

export interface Section {
  readonly id: string;
  /** Its name in the list of sections; the opening has none. */
  readonly nav?: (t: Messages) => string;
  mount(app: App): MountedSection;
}

/** Everything the article shows, from one state. A sentence without a token keeps the one before it. */
export function resultsOf(lb: Lookback, state: State, previous: Results | null): Results {
  const usable = (text: string, before: string | undefined, fallback: string) =>
    tokenize(text).length > 0 ? text : (before ?? fallback);
  const used: State = {
    ...state,
    text: usable(state.text, previous?.state.text, "…"),
    memory: usable(state.memory, previous?.state.memory, "…"),
  };
  const story = tellStory(lb, used);
  return {
    state: used,
    story,
    multi: multiHead(lb, used, story),
    cross: cross(lb, used, story),
    cheater: cheat(lb, story.tokens, used.mask),
  };
}
