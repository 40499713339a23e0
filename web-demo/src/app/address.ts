/** The reader's choices in the address: #lang=zh&mask=off&heads=4&at=mask, so that a link shows what the sender saw. */
import { initialState, type Lang, MAX_HEADS, type MaskChoice, SENTENCES, type State } from "./state";

const MASKS: readonly MaskChoice[] = ["causal", "off", "inverted"];

export function preferredLanguage(languages: readonly string[]): Lang {
  return languages[0]?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function readAddress(hash: string, languages: readonly string[]): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const lang = given.get("lang");
  const state = initialState(lang === "zh" || lang === "en" ? lang : preferredLanguage(languages));
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

/** Only what differs from the defaults is written, and always the language. */
export function writeAddress(state: State, at?: string): string {
  const start = initialState(state.lang);
  const out = new URLSearchParams({ lang: state.lang });
  if (state.mask !== start.mask) out.set("mask", state.mask);
  if (state.heads !== start.heads) out.set("heads", String(state.heads));
  if (state.text !== SENTENCES[state.lang].text) out.set("text", state.text);
  if (state.memory !== SENTENCES[state.lang].memory) out.set("memory", state.memory);
  if (at) out.set("at", at);
  return `#${out}`;
}

export function placeInAddress(hash: string): string | null {
  return new URLSearchParams(hash.replace(/^#/, "")).get("at");
}
