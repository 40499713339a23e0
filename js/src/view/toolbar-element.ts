/** What the elements with a toolbar have in common: it can be hidden, and what it saves must be there. */
import { AttentionElement } from "./element.js";
import { refuse } from "./numbers.js";

export abstract class ToolbarElement extends AttentionElement {
  static override observedAttributes = [...AttentionElement.observedAttributes, "hide-toolbar"];

  get hideToolbar(): boolean {
    return this.hasAttribute("hide-toolbar");
  }
  set hideToolbar(hide: boolean) {
    this.toggleAttribute("hide-toolbar", hide);
  }

  /** The picture that is to be saved; says so where there is none. */
  protected exported<Picture>(picture: Picture | null | undefined): Picture {
    return picture ?? refuse("there is nothing to export: the element has no attention to show.");
  }
}
