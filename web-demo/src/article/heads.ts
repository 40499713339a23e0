import { at, rowOf, transposed } from "../engine/grid";
import type { MultiHead } from "../engine/heads";
import { type Story, WIDTH } from "../engine/story";
import { slider } from "../view/controls";
import { h } from "../view/dom";
import { type FigureModel, FigureView } from "../view/figure";
import { formatNumber, formatPercent } from "../view/format";
import { dotProduct, result, softmaxParts } from "../view/inspector";
import { operators, symbols } from "../view/symbols";
import type { App, Section } from "./app";
import { articleSection, maskControl, NO_LABELS } from "./parts";
import { MAX_HEADS } from "./state";

function headsModel(t: App["t"], story: Story, multi: MultiHead): FigureModel {
  const { tokens } = story;
  return {
    cell: 44,
    items: multi.weights.flatMap((weights, index) => [
      ...(index > 0 ? [{ operator: operators.none }] : []),
      {
        id: `head-${index + 1}`,
        name: t.heads.weights(index + 1),
        symbol: symbols.head(index + 1),
        tone: "a" as const,
        grid: weights,
        rows: tokens,
        cols: tokens,
        scale: "weight" as const,
        marked: (row: number, col: number) => col > row && at(weights, row, col) > 0,
      },
    ]),
    initial: { matrix: "head-1", row: tokens.length - 1, col: 0 },
    explain({ matrix, row, col }) {
      const head = Number(matrix.slice("head-".length));
      const weights = multi.weights[head - 1];
      const weight = weights ? at(weights, row, col) : Number.NaN;
      const sentence = t.heads.cell(head, tokens[row] ?? "", tokens[col] ?? "", formatPercent(weight));
      // The same place in the other heads: what else they make of these two words.
      const links = multi.weights.map((_, index) => ({ matrix: `head-${index + 1}`, row, col }));
      const scores = multi.scores[head - 1];
      const score = scores ? at(scores, row, col) : Number.NaN;
      const total = multi.logSumExp[head - 1]?.[row] ?? Number.NaN;
      return { sentence, parts: softmaxParts(score, total, weight, t.maskChapter.lse), spoken: sentence, links };
    },
  };
}

function concatModel(t: App["t"], story: Story, multi: MultiHead): FigureModel {
  const { tokens } = story;
  const { concat, outputWeight, output } = multi;
  const headOf = (col: number) => Math.floor(col / (WIDTH / multi.heads)) + 1;
  const one = (
    sentence: string,
    number: number,
    tone: "a" | "w",
    links: { matrix: string; row?: number; col?: number }[],
  ) => ({
    sentence,
    parts: [result(number, tone)],
    spoken: `${sentence} ${formatNumber(number)}`,
    links,
  });
  return {
    items: [
      {
        id: "concat",
        name: t.heads.concat,
        symbol: `<span class="symbol words">${t.heads.concatTitle}</span>`,
        tone: "a",
        grid: concat,
        rows: tokens,
        cols: Array.from({ length: WIDTH }, (_, col) => String(headOf(col))),
        scale: "signed",
        groups: WIDTH / multi.heads,
      },
      { operator: operators.times },
      {
        id: "wo",
        name: t.heads.outputWeight,
        symbol: symbols.wo,
        tone: "w",
        grid: transposed(outputWeight),
        rows: NO_LABELS,
        cols: NO_LABELS,
        scale: "signed",
      },
      { operator: operators.equals },
      {
        id: "y",
        name: t.heads.output,
        symbol: symbols.y,
        tone: "o",
        grid: output,
        rows: tokens,
        cols: NO_LABELS,
        scale: "signed",
      },
    ],
    initial: { matrix: "y", row: 0, col: 0 },
    explain({ matrix, row, col }) {
      const token = tokens[row] ?? "";
      if (matrix === "concat")
        return one(t.heads.concatCell(headOf(col), token), at(concat, row, col), "a", [{ matrix: "wo", row: col }]);
      if (matrix === "wo")
        return one(t.heads.weightCell(row + 1, col + 1), at(outputWeight, col, row), "w", [
          { matrix: "concat", col: row },
          { matrix: "y", col },
        ]);
      const number = at(output, row, col);
      const sentence = t.heads.outputCell(token, col + 1);
      return {
        sentence,
        parts: dotProduct(rowOf(concat, row), rowOf(outputWeight, col), ["a", "w"], result(number, "o")),
        spoken: `${sentence} ${formatNumber(number)}`,
        links: [
          { matrix: "concat", row },
          { matrix: "wo", col },
        ],
      };
    },
  };
}

export const heads: Section = {
  id: "heads",
  nav: (t) => t.heads.nav,
  mount(app) {
    const { t, figures, store } = app;
    const looks = new FigureView(t.heads.caption, figures);
    const mixing = new FigureView(t.heads.concatCaption, figures);
    const count = slider(t.heads.slider, { min: 1, max: MAX_HEADS }, t.heads.valueSpoken, (heads) =>
      store.set({ heads }),
    );
    const control = maskControl(app);
    const message = h("code", { class: "engine-message", lang: "en" });
    const refusal = h("div", { class: "refusal", role: "alert" });
    const shown = h("div", {}, looks.element, h("div", { class: "prose", html: t.heads.concatBody }), mixing.element);
    return {
      element: articleSection(
        "heads",
        t.heads.title,
        t.heads.body,
        h("div", { class: "control-line" }, count.element, control.element),
        refusal,
        shown,
      ),
      figures: [looks, mixing],
      update({ state, story, multi }) {
        count.show(state.heads);
        control.show(state.mask);
        count.output.textContent = t.heads.value(state.heads, multi.value ? String(WIDTH / state.heads) : "?");
        shown.hidden = multi.value === null;
        refusal.hidden = multi.refusal === null;
        if (multi.value) {
          refusal.replaceChildren();
          looks.show(headsModel(t, story, multi.value));
          mixing.show(concatModel(t, story, multi.value));
        } else {
          message.textContent = multi.refusal.message;
          message.dataset.code = multi.refusal.code;
          refusal.replaceChildren(h("p", {}, t.heads.refused), message);
        }
      },
    };
  },
};
