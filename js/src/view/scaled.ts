/** What the elements of one matrix have in common: a scale of colours, weights by their values, and a toolbar. */
import { AttentionElement } from "./element.js";
import { SCALES, type ScaleKind } from "./map/shades.js";

/** Longer rows have weights so small that a linear scale shows next to nothing. */
const LINEAR_KEYS = 64;

export abstract class ScaledElement extends AttentionElement {
  static override observedAttributes = [
    ...AttentionElement.observedAttributes,
    "scale",
    "value-weighted",
    "hide-toolbar",
  ];

  /** 'linear', or 'log': each tenth of the largest weight a quarter of the scale. Default: linear up to 64 keys. */
  get scale(): ScaleKind {
    const few = (this.attention?.keyLength ?? 0) <= LINEAR_KEYS;
    return this.choice("scale", this.getAttribute("scale") ?? (few ? "linear" : "log"), SCALES);
  }
  set scale(scale: ScaleKind) {
    this.setAttribute("scale", scale);
  }

  /** Each weight times the length of its value, where `v` is given. */
  get valueWeighted(): boolean {
    return this.hasAttribute("value-weighted");
  }
  set valueWeighted(weighted: boolean) {
    this.toggleAttribute("value-weighted", weighted);
  }

  get hideToolbar(): boolean {
    return this.hasAttribute("hide-toolbar");
  }
  set hideToolbar(hide: boolean) {
    this.toggleAttribute("hide-toolbar", hide);
  }
}
