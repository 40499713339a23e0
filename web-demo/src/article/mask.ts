import { at, largest, rowOf } from "../engine/grid";
import { leaksOf, type Story } from "../engine/story";
import { h } from "../view/dom";
import { type CellRef, type FigureModel, FigureView } from "../view/figure";
import { formatNumber, formatPercent } from "../view/format";
import { type Explanation, equals, type Part, result, softmaxParts, text, value } from "../view/inspector";
import { operators, symbols } from "../view/symbols";
import type { App, Results, Section } from "./app";
import { cheaterPanel } from "./cheater";
import { articleSection, maskControl } from "./parts";

const HIDDEN = Number.NEGATIVE_INFINITY;

function explainWeight(
  t: App["t"],
  story: Story,
  row: number,
  col: number,
): { sentence: string; parts: readonly Part[] } {
  const m = t.maskChapter;
  const query = story.tokens[row] ?? "";
  const weight = at(story.weights, row, col);
  const total = story.logSumExp[row] ?? HIDDEN;
  return {
    sentence: total === HIDDEN ? m.nothing(query) : m.weightCell(query, story.tokens[col] ?? "", formatPercent(weight)),
    parts: softmaxParts(at(story.masked, row, col), total, weight, m.lse),
  };
}

function explain(t: App["t"], story: Story, { matrix, row, col }: CellRef): Explanation {
  const m = t.maskChapter;
  const query = story.tokens[row] ?? "";
  const key = story.tokens[col] ?? "";
  const done = (
    sentence: string,
    parts: readonly Part[],
    number: number,
    links: Explanation["links"],
  ): Explanation => ({
    sentence,
    parts,
    spoken: `${sentence} ${formatNumber(number)}`,
    links,
  });
  const scaled = at(story.scaled, row, col);
  const bias = at(story.bias, row, col);
  const masked = at(story.masked, row, col);
  if (matrix === "s") return done(t.scores.scaledCell(query, key), [result(scaled, "s")], scaled, []);
  if (matrix === "m") {
    const sentence = bias === HIDDEN ? m.biasHidden(query, key) : m.biasSeen(query, key);
    return done(sentence, [result(bias, "m")], bias, [{ matrix: "a", row, col }]);
  }
  if (matrix === "masked") {
    const parts = [value(scaled, "s"), text("+"), value(bias, "m"), equals(result(masked, "m"))];
    return done(m.maskedCell(query, key), parts, masked, [
      { matrix: "s", row, col },
      { matrix: "m", row, col },
    ]);
  }
  const { sentence, parts } = explainWeight(t, story, row, col);
  return done(sentence, parts, at(story.weights, row, col), [{ matrix: "masked", row }]);
}

function model(t: App["t"], story: Story): FigureModel {
  const m = t.maskChapter;
  const { tokens, scaled, bias, masked, weights } = story;
  const shared = { rows: tokens, cols: tokens };
  const extent = largest(scaled) || 1;
  const last = tokens.length - 1;
  return {
    items: [
      { id: "s", name: m.scaled, symbol: symbols.s, tone: "s", grid: scaled, scale: "signed", extent, ...shared },
      { operator: operators.plus },
      { id: "m", name: m.bias, symbol: symbols.m, tone: "m", grid: bias, scale: "signed", extent, ...shared },
      { operator: operators.equals },
      {
        id: "masked",
        name: m.masked,
        symbol: symbols.masked,
        tone: "m",
        grid: masked,
        scale: "signed",
        extent,
        ...shared,
      },
      { operator: operators.softmax, room: 84 },
      {
        id: "a",
        name: m.weights,
        symbol: symbols.a,
        tone: "a",
        grid: weights,
        scale: "weight",
        marked: (row, col) => col > row && at(weights, row, col) > 0,
        ...shared,
      },
    ],
    initial: { matrix: "a", row: Math.min(1, last), col: Math.min(2, last) },
    explain: (cell) => explain(t, story, cell),
  };
}

/** What the mask lets through, said in words. */
function verdict(t: App["t"], { state, story }: Results): { tone: string; lines: string[] } {
  const v = t.maskChapter.verdict;
  const { tokens, weights, logSumExp } = story;
  const name = (index: number) => tokens[index] ?? "";
  const leaks = leaksOf(weights);
  const told = leaks.slice(0, 6).map((leak) => v.leak(name(leak.query), name(leak.key), formatPercent(leak.weight)));
  if (state.mask === "inverted") {
    const blind = tokens.flatMap((token, row) =>
      logSumExp[row] === HIDDEN && rowOf(weights, row).every((w) => w === 0) ? [v.empty(token)] : [],
    );
    return { tone: "bad", lines: [v.inverted, ...blind, ...told] };
  }
  if (leaks.length > 0) return { tone: "bad", lines: [v.off(leaks.length), ...told] };
  return { tone: "good", lines: [tokens.length === 1 ? v.single : v.causal] };
}

export const mask: Section = {
  id: "mask",
  nav: (t) => t.maskChapter.nav,
  mount(app) {
    const { t, figures } = app;
    const figure = new FigureView(t.maskChapter.caption, figures);
    const control = maskControl(app);
    const told = h("div", { class: "verdict", role: "status" });
    const cheater = cheaterPanel(app);
    return {
      element: articleSection(
        "mask",
        t.maskChapter.title,
        t.maskChapter.body,
        control.element,
        figure.element,
        told,
        cheater.element,
      ),
      figures: [figure],
      update(results) {
        control.show(results.state.mask);
        figure.show(model(t, results.story));
        const { tone, lines } = verdict(t, results);
        const [first = "", ...rest] = lines;
        told.dataset.tone = tone;
        told.replaceChildren(
          h("p", {}, first),
          ...(rest.length > 0 ? [h("ul", {}, ...rest.map((line) => h("li", {}, line)))] : []),
        );
        cheater.update(results);
      },
    };
  },
};
