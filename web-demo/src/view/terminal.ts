/** The command that does the same in a terminal, to be copied. */
import { copyButton } from "./copy";
import { h } from "./dom";

export interface TerminalWords {
  readonly title: string;
  readonly hint: string;
  readonly copy: string;
  readonly copied: string;
  readonly failed: string;
}

export class TerminalView {
  readonly element: HTMLElement;
  readonly #code = h("code", {});
  readonly #command: () => string | null;

  /** `command`: null while there is none. */
  constructor(words: TerminalWords, command: () => string | null) {
    this.#command = command;
    this.element = h(
      "section",
      { class: "terminal", "aria-label": words.title },
      h(
        "div",
        { class: "code-head" },
        h("h3", {}, words.title),
        copyButton(words, () => this.#code.textContent ?? ""),
      ),
      h("pre", { class: "code", tabindex: 0 }, this.#code),
      h("p", { class: "hint" }, words.hint),
    );
  }

  show(): void {
    const command = this.#command();
    this.element.hidden = command === null;
    if (command === null || this.#code.textContent === command) return;
    // A line is broken before an option, not within one.
    const [first = "", ...options] = command.split(/ (?=--)/);
    this.#code.replaceChildren(first, ...options.flatMap((option) => [" ", h("span", { class: "option" }, option)]));
  }
}
