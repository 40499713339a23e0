import { at, rowOf, transposed } from "../engine/grid";
import { segmented } from "../view/controls";
import { FigureView } from "../view/figure";
import { formatNumber } from "../view/format";
import { dotProduct, result } from "../view/inspector";
import { operators, symbols } from "../view/symbols";
import type { Section } from "./app";
import { articleSection, NO_LABELS } from "./parts";
import type { Projection } from "./state";

const WEIGHT_SYMBOL = { q: symbols.wq, k: symbols.wk, v: symbols.wv } as const;

export const projections: Section = {
  id: "qkv",
  nav: (t) => t.projections.nav,
  mount({ t, figures, store }) {
    const p = t.projections;
    const figure = new FigureView(p.caption, figures);
    const choice = segmented<Projection>(
      p.legend,
      [
        { value: "q", label: p.q },
        { value: "k", label: p.k },
        { value: "v", label: p.v },
      ],
      (projection) => store.set({ projection }),
    );
    return {
      element: articleSection("qkv", p.title, p.body, choice.element, figure.element),
      figures: [figure],
      update({ state, story }) {
        const which = state.projection;
        choice.show(which);
        const { tokens, x } = story;
        const weight = story.weight[which];
        const out = story[which];
        figure.show({
          items: [
            {
              id: "x",
              name: t.words.matrix,
              symbol: symbols.x,
              tone: "x",
              grid: x,
              rows: tokens,
              cols: NO_LABELS,
              scale: "signed",
            },
            { operator: operators.times },
            {
              id: "weight",
              name: p.weight[which],
              symbol: WEIGHT_SYMBOL[which],
              tone: "w",
              grid: transposed(weight),
              rows: NO_LABELS,
              cols: NO_LABELS,
              scale: "signed",
            },
            { operator: operators.equals },
            {
              id: "out",
              name: p.result[which],
              symbol: symbols[which],
              tone: which,
              grid: out,
              rows: tokens,
              cols: NO_LABELS,
              scale: "signed",
            },
          ],
          initial: { matrix: "out", row: 0, col: 0 },
          explain({ matrix, row, col }) {
            const token = tokens[row] ?? "";
            if (matrix === "x") {
              const sentence = t.words.cell(token, col + 1);
              const value = at(x, row, col);
              return { sentence, parts: [result(value, "x")], spoken: `${sentence} ${formatNumber(value)}`, links: [] };
            }
            if (matrix === "weight") {
              const sentence = p.weightCell(row + 1, col + 1);
              const value = at(weight, col, row);
              return {
                sentence,
                parts: [result(value, "w")],
                spoken: `${sentence} ${formatNumber(value)}`,
                links: [
                  { matrix: "x", col: row },
                  { matrix: "out", col },
                ],
              };
            }
            const sentence = p.cell[which](token, col + 1);
            const value = at(out, row, col);
            return {
              sentence,
              parts: dotProduct(rowOf(x, row), rowOf(weight, col), ["x", "w"], result(value, which)),
              spoken: `${sentence} ${formatNumber(value)}`,
              links: [
                { matrix: "x", row },
                { matrix: "weight", col },
              ],
            };
          },
        });
      },
    };
  },
};
