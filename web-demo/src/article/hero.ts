/** The opening: the formula, the sentence, and which words one word looks at. */

import { at } from "../engine/grid";
import { ArcsView } from "../view/arcs";
import { h } from "../view/dom";
import { formatPercent } from "../view/format";
import { formula } from "../view/symbols";
import type { Section } from "./app";
import { maskControl, sentenceField } from "./parts";

export const hero: Section = {
  id: "start",
  mount(app) {
    const { t, store } = app;
    const sentence = sentenceField(app, "text");
    const mask = maskControl(app);
    const arcs = new ArcsView(t.hero, (query) => store.set({ query }));
    const shares = h("p", { class: "shares", role: "status" });
    const key = (name: string, label: string) => h("span", { class: `key ${name}` }, h("i", {}), label);
    const element = h(
      "section",
      { id: "chapter-start", class: "hero", "aria-labelledby": "start-title" },
      h("p", { class: "eyebrow" }, t.hero.eyebrow),
      h("h1", { id: "start-title", tabindex: -1 }, t.title),
      h("p", { class: "lead", html: t.hero.lead }),
      h("div", { class: "formula-line", html: formula(t.hero.formula) }),
      h(
        "figure",
        { class: "opening" },
        h("div", { class: "opening-controls" }, sentence.element, mask.element),
        h("p", { class: "arc-question", "aria-hidden": "true" }, t.hero.arcs),
        arcs.element,
        h(
          "figcaption",
          {},
          h(
            "span",
            { class: "keys", "aria-hidden": "true" },
            key("back", t.hero.legendPast),
            key("ahead", t.hero.legendFuture),
            key("hidden", t.hero.legendHidden),
          ),
          shares,
        ),
      ),
    );
    return {
      element,
      figures: [],
      update({ state, story }) {
        sentence.show(state);
        mask.show(state.mask);
        const query = Math.min(state.query, story.tokens.length - 1);
        arcs.show({ tokens: story.tokens, query, weights: story.weights, bias: story.bias });
        const seen = story.tokens
          .map((token, j) => ({ token, weight: at(story.weights, query, j) }))
          .filter(({ weight }) => weight > 0)
          .map(({ token, weight }) => t.hero.share(token, formatPercent(weight)));
        const name = story.tokens[query] ?? "";
        shares.textContent = seen.length > 0 ? t.hero.shares(name, seen.join(t.hero.separator)) : t.hero.nothing(name);
      },
    };
  },
};
