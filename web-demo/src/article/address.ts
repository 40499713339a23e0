/** The reader's choices in the article's part of the address: mask=off&heads=4. */
import type { Lang } from "../app/state";
import { initialState, MAX_HEADS, type MaskChoice, SENTENCES, type State } from "./state";

const MASKS: readonly MaskChoice[] = ["causal", "off", "inverted"];

export function readChoices(given: URLSearchParams, lang: Lang): State {
  const state = initialState(lang);
  const mask = MASKS.find((choice) => choice === given.get("mask")) ?? state.mask;
  const heads = Number(given.get("heads"));
  return {
    ...state,
    text: given.get("text")?.trim() || state.text,
    memory: given.get("memory")?.trim() || state.memory,
    mask,
    heads: Number.isInteger(heads) && heads >= 1 && heads <= MAX_HEADS ? heads : state.heads,
  };
}

/** Only what differs from the defaults is written. */
export function writeChoices(state: State, at?: string): URLSearchParams {
  const start = initialState(state.lang);
  const out = new URLSearchParams();
  if (state.mask !== start.mask) out.set("mask", state.mask);
  if (state.heads !== start.heads) out.set("heads", String(state.heads));
  if (state.text !== SENTENCES[state.lang].text) out.set("text", state.text);
  if (state.memory !== SENTENCES[state.lang].memory) out.set("memory", state.memory);
  if (at) out.set("at", at);
  return out;
}
