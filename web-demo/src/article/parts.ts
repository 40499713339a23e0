/** Pieces that several chapters use. */

import { MAX_TOKENS, tokenize } from "../engine/embed";
import { type Control, segmented, textField } from "../view/controls";
import { h } from "../view/dom";
import { symbols } from "../view/symbols";
import type { App } from "./app";
import { type MaskChoice, SENTENCES, type State } from "./state";

export function articleSection(id: string, title: string, body: string, ...children: readonly Node[]): HTMLElement {
  const prose = h("div", { class: "prose", html: body });
  for (const place of prose.querySelectorAll("[data-root]")) place.innerHTML = symbols.root;
  const heading = h("h2", { id: `${id}-title`, tabindex: -1 }, title);
  return h(
    "section",
    { id: `chapter-${id}`, class: "chapter", "aria-labelledby": `${id}-title` },
    heading,
    prose,
    ...children,
  );
}

export function maskControl(app: App): Control<MaskChoice> {
  const { t, store } = app;
  return segmented<MaskChoice>(
    t.mask.legend,
    [
      { value: "causal", label: t.mask.causal },
      { value: "off", label: t.mask.off },
      { value: "inverted", label: t.mask.inverted },
    ],
    (mask) => store.set({ mask }),
    "mask-choice",
  );
}

export function sentenceField(app: App, which: "text" | "memory"): { element: HTMLElement; show(state: State): void } {
  const { t, store } = app;
  const words = {
    label: which === "text" ? t.sentence.label : t.sentence.memory,
    reset: t.sentence.reset,
    hint: t.sentence.hint(MAX_TOKENS),
    empty: t.sentence.empty,
  };
  const field = textField(
    words,
    (text) => store.set(which === "text" ? { text } : { memory: text }),
    () => SENTENCES[store.state.lang][which],
  );
  return {
    element: field.element,
    show() {
      // The state as typed, not the last usable sentence.
      const typed = store.state[which];
      field.show(typed);
      field.warn(tokenize(typed).length === 0);
    },
  };
}

/** Labels of feature columns: a vector's numbers have no names, so small matrices get none. */
export const NO_LABELS: readonly string[] = [];
