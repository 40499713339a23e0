/** What is shown in a chapter's place when it cannot go on: the words of what failed, and a way to try again. */
import type { Messages } from "../locales/en";
import { h } from "../view/dom";

export function failurePanel(t: Messages, error: unknown, retry: () => void): HTMLElement {
  const message = error instanceof Error ? error.message : String(error);
  return h(
    "div",
    { class: "failure", role: "alert" },
    h("h1", {}, t.failure.title),
    h("p", {}, t.failure.lead),
    h("code", { class: "engine-message", lang: "en" }, message),
    h("p", { html: t.failure.hint }),
    h("button", { type: "button", class: "primary", onclick: retry }, t.failure.retry),
  );
}
