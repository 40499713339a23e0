/** Where one token came from: what the model looked at, what else could have come, and a way to choose that instead. */
import { h } from "../../view/dom";
import { formatPercent } from "../../view/format";
import type { WriteMessages } from "./locales/en";
import type { Sampling } from "./protocol";
import type { Candidate, Token } from "./tree";
import type { Writer } from "./writer";

const LOOKS = 6;

export class TokenView {
  readonly element = h("section", { class: "card token-card" });
  readonly #writer: Writer;
  readonly #t: WriteMessages;
  /** What is shown now, so that nothing is built anew under the pointer. */
  #shown: { token: Token | null; row: Float32Array | null; sampling: Sampling; canChoose: boolean } | null = null;

  constructor(writer: Writer, t: WriteMessages) {
    this.#writer = writer;
    this.#t = t;
  }

  show(): void {
    const { shown: token } = this.#writer;
    const { settings, phase } = this.#writer.state;
    const next = { token, row: token?.row ?? null, sampling: settings.sampling, canChoose: phase !== "loading" };
    const old = this.#shown;
    if (
      old?.token === next.token &&
      old.row === next.row &&
      old.sampling === next.sampling &&
      old.canChoose === next.canChoose
    )
      return;
    this.#shown = next;
    const t = this.#t.token;
    this.element.setAttribute("aria-label", token ? t.title(this.#name(token)) : t.none);
    if (!token) {
      this.element.replaceChildren(h("p", { class: "hint" }, t.none));
      return;
    }
    this.element.replaceChildren(
      h("h3", {}, t.title(this.#name(token))),
      h("p", { class: "origin" }, this.#origin(token)),
      ...this.#candidates(token, settings.sampling),
      ...this.#looks(token),
      ...(token === this.#writer.tree.end || token.special
        ? []
        : [h("button", { type: "button", class: "quiet", onclick: () => this.#writer.rewind(token) }, t.from)]),
    );
  }

  #name(token: Token): string {
    const { text } = this.#t;
    if (token.special) return text.start;
    return token.text.replaceAll("\n", "⏎").trim() || (token.text === "" ? text.part : "␣");
  }

  /** With signs for what cannot be seen, those of the package's views. */
  #label({ text }: { text: string }): string {
    if (text.trim() === "") return text.replaceAll("\n", "⏎").replaceAll(" ", "␣");
    return text.replaceAll("\n", "⏎").replace(/^ | $/g, "·");
  }

  #origin(token: Token): string {
    const t = this.#t.token;
    if (token.given) return t.given;
    const own = token.candidates.find(({ id }) => id === token.id);
    return own ? t.drawn(formatPercent(own.probability)) : t.rare;
  }

  #candidates(token: Token, sampling: Sampling): HTMLElement[] {
    const t = this.#t.token;
    if (token.candidates.length === 0) return [];
    const cut = cutOff(token.candidates, sampling);
    const rest = 1 - token.candidates.reduce((sum, { probability }) => sum + probability, 0);
    const items = token.candidates.map((candidate, at) => {
      const { probability, id } = candidate;
      const percent = formatPercent(probability);
      const label = this.#label(candidate);
      const isOwn = id === token.id;
      return h(
        "li",
        {},
        h(
          "button",
          {
            type: "button",
            class: `candidate ${isOwn ? "own" : ""} ${at >= cut ? "cut" : ""}`,
            "data-id": id,
            "data-probability": probability,
            title: isOwn ? t.chosen : at >= cut ? `${t.choose(label)} (${t.cut})` : t.choose(label),
            disabled: isOwn,
            onclick: () => this.#writer.instead(token, candidate),
          },
          h("span", { class: "word" }, label),
          bar(probability),
          h("span", { class: "percent" }, percent),
        ),
      );
    });
    return [
      h("h4", {}, t.candidates),
      h("ol", { class: "bars" }, ...items),
      ...(rest > 0.0005 ? [h("p", { class: "hint rest" }, t.rest(formatPercent(rest)))] : []),
    ];
  }

  #looks(token: Token): HTMLElement[] {
    const t = this.#t.token;
    const title = h("h4", {}, token.given ? t.lookedGiven : t.looked);
    if (!token.parent?.parent) return [h("p", { class: "hint" }, t.first)];
    if (!token.row) return [title, h("p", { class: "hint" }, t.waiting)];
    const path = this.#writer.tree.path(token);
    const most = [...token.row.keys()]
      .sort((a, b) => (token.row?.[b] ?? 0) - (token.row?.[a] ?? 0) || a - b)
      .slice(0, LOOKS);
    const items = most.map((key) => {
      const weight = token.row?.[key] ?? 0;
      const seen = path[key];
      return h(
        "li",
        { class: "look", "data-key": key, "data-weight": weight },
        h("span", { class: "word" }, seen?.special ? this.#t.text.start : this.#label(seen ?? { text: "" })),
        bar(weight),
        h("span", { class: "percent" }, formatPercent(weight)),
      );
    });
    return [title, h("ol", { class: "bars looks" }, ...items)];
  }
}

function bar(share: number): HTMLElement {
  const element = h("span", { class: "bar-track", "aria-hidden": "true" }, h("i", { class: "fill" }));
  element.style.setProperty("--share", share.toFixed(4));
  return element;
}

/** How many candidates top-k and top-p leave for certain; what follows the reported ones is not known here. */
export function cutOff(candidates: readonly Candidate[], { temperature, topK, topP }: Sampling): number {
  if (temperature === 0) return 1;
  const most = topK > 0 ? Math.min(topK, candidates.length) : candidates.length;
  // Top-p is of what top-k leaves: its mass is known if all of that is here, and else at most 1.
  const isWhole = topK > 0 && topK <= candidates.length;
  const mass = isWhole ? candidates.slice(0, topK).reduce((sum, { probability }) => sum + probability, 0) : 1;
  let kept = 0;
  let left = 0;
  while (left < most && (left === 0 || kept < mass * topP)) kept += candidates[left++]?.probability ?? 0;
  return left;
}
