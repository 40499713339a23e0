import { at } from "../engine/grid";
import { checkbox } from "../view/controls";
import { h } from "../view/dom";
import { FigureView } from "../view/figure";
import { formatPercent } from "../view/format";
import { softmaxParts } from "../view/inspector";
import { operators } from "../view/symbols";
import type { Section } from "./app";
import { articleSection, sentenceField } from "./parts";

export const cross: Section = {
  id: "cross",
  nav: (t) => t.cross.nav,
  mount(app) {
    const { t, figures, store } = app;
    const c = t.cross;
    const figure = new FigureView(c.caption, figures);
    const own = sentenceField(app, "text");
    const other = sentenceField(app, "memory");
    const causal = checkbox(c.causal, (crossCausal) => store.set({ crossCausal }));
    const message = h("code", { class: "engine-message", lang: "en" });
    const refusal = h("div", { class: "refusal", role: "alert" });
    const title = (label: string) => `<span class="symbol words">${label}</span>`;
    return {
      element: articleSection(
        "cross",
        c.title,
        c.body,
        h("div", { class: "two-fields" }, own.element, other.element),
        h("div", { class: "control-line" }, causal.element),
        refusal,
        figure.element,
      ),
      figures: [figure],
      update({ state, story, cross: outcome }) {
        own.show(state);
        other.show(state);
        causal.show(state.crossCausal);
        figure.element.hidden = outcome.value === null;
        refusal.hidden = outcome.refusal === null;
        if (!outcome.value) {
          message.textContent = outcome.refusal.message;
          message.dataset.code = outcome.refusal.code;
          refusal.replaceChildren(h("p", {}, t.heads.refused), message, h("p", { class: "hint" }, c.causalHint));
          return;
        }
        refusal.replaceChildren();
        const { memoryTokens, weights, scores, logSumExp } = outcome.value;
        figure.show({
          items: [
            {
              id: "self",
              name: c.selfName,
              symbol: title(c.self),
              tone: "a",
              grid: story.weights,
              rows: story.tokens,
              cols: story.tokens,
              scale: "weight",
              marked: (row, col) => col > row && at(story.weights, row, col) > 0,
            },
            { operator: operators.none },
            {
              id: "cross",
              name: c.crossName,
              symbol: title(c.cross),
              tone: "a",
              grid: weights,
              rows: story.tokens,
              cols: memoryTokens,
              scale: "weight",
            },
          ],
          initial: { matrix: "cross", row: 0, col: 0 },
          explain({ matrix, row, col }) {
            const self = matrix === "self";
            const weight = at(self ? story.weights : weights, row, col);
            const score = at(self ? story.masked : scores, row, col);
            const total = (self ? story.logSumExp : logSumExp)[row] ?? Number.NaN;
            const key = (self ? story.tokens : memoryTokens)[col] ?? "";
            const sentence = (self ? c.selfCell : c.crossCell)(story.tokens[row] ?? "", key, formatPercent(weight));
            return {
              sentence,
              parts: softmaxParts(score, total, weight, t.maskChapter.lse),
              spoken: sentence,
              links: [{ matrix: self ? "cross" : "self", row }],
            };
          },
        });
      },
    };
  },
};
