/** Registers the elements where there are any; under Node.js it does nothing but export. */
import { AttentionHeads } from "./heads/element.js";
import { AttentionMap } from "./map/element.js";
import { AttentionSteps } from "./steps/element.js";
import { AttentionText } from "./text/element.js";

export type { ColorScale } from "./colours.js";
export { Attention, type AttentionKind, type HeadChoice, type HeadVectors, type Rows } from "./data.js";
export { AttentionElement } from "./element.js";
export type { CellDetail, HeadDetail } from "./events.js";
export { AttentionHeads, type HeadsView } from "./heads/element.js";
export { AttentionMap } from "./map/element.js";
export { type AttentionInput, type Numbers, type NumbersTensor, type ReadOptions, readAttention } from "./read.js";
export { AttentionSteps } from "./steps/element.js";
export type { StepsInput } from "./steps/stages.js";
export { readTokens, type Token, type TokenFormat } from "./tokens.js";

// The maps come first: others are made of them.
const elements = {
  "attention-map": AttentionMap,
  "attention-heads": AttentionHeads,
  "attention-steps": AttentionSteps,
  "attention-text": AttentionText,
};

if (globalThis.customElements)
  for (const [name, element] of Object.entries(elements))
    if (!customElements.get(name)) customElements.define(name, element);

declare global {
  interface HTMLElementTagNameMap {
    "attention-heads": AttentionHeads;
    "attention-map": AttentionMap;
    "attention-steps": AttentionSteps;
    "attention-text": AttentionText;
  }
}
