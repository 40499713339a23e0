/** What an element shows in place of a picture: that there is nothing yet, or what is wrong. */
import { h } from "./dom.js";
import type { Words } from "./words.js";

export class Message {
  readonly element = h("div", { part: "message", class: "message", hidden: true });
  /** Told once. */
  #failure: string | null = null;

  get isFailure(): boolean {
    return this.#failure !== null;
  }

  /** What was wrong is so no longer. */
  forget(): void {
    this.#failure = null;
  }

  hide(): void {
    this.element.hidden = true;
  }

  say(text: string): void {
    this.element.hidden = false;
    this.element.className = "message";
    this.element.removeAttribute("role");
    this.element.replaceChildren(h("p", {}, text));
  }

  /** Says what is wrong; returns it if that is news. */
  fail(error: unknown, words: Words): string | null {
    const message = error instanceof Error ? error.message : String(error);
    this.element.hidden = false;
    if (message === this.#failure) return null;
    this.#failure = message;
    this.element.className = "message error";
    this.element.setAttribute("role", "alert");
    this.element.replaceChildren(h("strong", {}, words.failed), h("p", { lang: "en", dir: "ltr" }, message));
    return message;
  }
}
