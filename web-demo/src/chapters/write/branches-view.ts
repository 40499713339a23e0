/** The tree of what has been written: a line for each branch, moved in beneath the one that it leaves. */
import { h } from "../../view/dom";
import type { WriteMessages } from "./locales/en";
import type { Branch } from "./tree";
import type { Writer } from "./writer";

const LETTERS = 90;

export class BranchesView {
  readonly element: HTMLElement;
  readonly #list = h("ul", { class: "branches" });
  readonly #writer: Writer;
  readonly #t: WriteMessages["branches"];
  #shown = "";

  constructor(writer: Writer, t: WriteMessages["branches"]) {
    this.#writer = writer;
    this.#t = t;
    this.element = h(
      "section",
      { class: "branch-card", "aria-label": t.title },
      h("h3", {}, t.title),
      h("p", { class: "hint" }, t.hint),
      this.#list,
    );
  }

  /** A tree of one branch says nothing that the text does not. */
  show(): void {
    const { tree } = this.#writer;
    const branches = tree.branches();
    this.element.hidden = branches.length < 2;
    if (this.element.hidden) return;
    const key = JSON.stringify(branches.map((branch) => [branch.depth, branch.text, tree.isCurrent(branch)]));
    if (key === this.#shown) return;
    this.#shown = key;
    this.#list.replaceChildren(...branches.map((branch) => this.#line(branch)));
  }

  #line(branch: Branch): HTMLElement {
    const t = this.#t;
    const { tree } = this.#writer;
    const letters = [...branch.text.replaceAll("\n", " ⏎ ").trim()];
    const text = letters.length > LETTERS ? `${letters.slice(0, LETTERS).join("")}…` : letters.join("");
    const before = branch.start.parent?.special ? "" : (branch.start.parent?.text.trim() ?? "");
    const current = tree.isCurrent(branch);
    const line = h(
      "li",
      {},
      h(
        "button",
        {
          type: "button",
          "aria-current": current ? "true" : undefined,
          title: t.show,
          onclick: () => this.#writer.rewind(branch.end),
        },
        h("span", { class: "words" }, text),
        h(
          "span",
          { class: "where" },
          [...(before ? [t.after(before)] : []), t.length(tree.path(branch.end).length)].join(" · "),
        ),
      ),
    );
    line.style.setProperty("--depth", String(Math.min(branch.depth, 6)));
    return line;
  }
}
