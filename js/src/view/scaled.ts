/** What the elements of one matrix have in common: a scale of colours, and weights by their values. */
import { SCALES, type ScaleKind } from "./map/shades.js";
import { ToolbarElement } from "./toolbar-element.js";

/** Longer rows have weights so small that a linear scale shows next to nothing. */
const LINEAR_KEYS = 64;

export abstract class ScaledElement extends ToolbarElement {
  static override observedAttributes = [...ToolbarElement.observedAttributes, "scale", "value-weighted"];

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
}
