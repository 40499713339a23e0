/** The experiment beside the mask: what copying earns in training, and what it writes afterwards. */

import { h } from "../view/dom";
import { formatPercent } from "../view/format";
import type { App, Results } from "./app";
import { maskControl } from "./parts";

export function cheaterPanel(app: App): { element: HTMLElement; update(results: Results): void } {
  const c = app.t.maskChapter.cheat;
  const control = maskControl(app);
  const rows = h("tbody");
  const lead = h("p", { class: "writing-lead" });
  const written = h("p", { class: "written" });
  const verdict = h("p", { class: "cheat-verdict", role: "status" });
  const head = h(
    "tr",
    {},
    ...[c.trainingHead.token, c.trainingHead.answer, c.trainingHead.share].map((label) =>
      h("th", { scope: "col" }, label),
    ),
  );
  const element = h(
    "aside",
    { class: "experiment", "aria-labelledby": "cheat-title" },
    h("h3", { id: "cheat-title" }, c.title),
    h("div", { class: "prose", html: c.body }),
    control.element,
    h(
      "div",
      { class: "experiment-halves" },
      h(
        "div",
        {},
        h("h4", {}, c.training),
        h("table", { class: "plain", "data-table": "cheater" }, h("thead", {}, head), rows),
      ),
      h("div", {}, h("h4", {}, c.writing), lead, written),
    ),
    verdict,
  );
  return {
    element,
    update({ state, story, cheater }) {
      control.show(state.mask);
      rows.replaceChildren(
        ...cheater.training.map((share, i) => {
          const bar = h("span", { class: "bar", "aria-hidden": "true" });
          bar.style.setProperty("--share", String(share));
          return h(
            "tr",
            {},
            h("td", {}, story.tokens[i] ?? ""),
            h("td", {}, story.tokens[i + 1] ?? ""),
            h("td", {}, bar, h("data", { value: String(share) }, formatPercent(share))),
          );
        }),
      );
      lead.textContent = c.writingLead(story.tokens[0] ?? "");
      written.replaceChildren(...cheater.writing.map((token) => h("span", { class: "chip" }, token)));
      verdict.textContent = c.verdict[state.mask];
    },
  };
}
