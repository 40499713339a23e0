import { at, rowOf, transposed } from "../engine/grid";
import { FigureView } from "../view/figure";
import { formatNumber, formatPercent } from "../view/format";
import { dotProduct, result } from "../view/inspector";
import { operators, symbols } from "../view/symbols";
import type { Section } from "./app";
import { articleSection, NO_LABELS } from "./parts";

export const output: Section = {
  id: "output",
  nav: (t) => t.output.nav,
  mount({ t, figures }) {
    const o = t.output;
    const figure = new FigureView(o.caption, figures);
    return {
      element: articleSection("output", o.title, o.body, figure.element),
      figures: [figure],
      update({ story }) {
        const { tokens, weights, v, output: out } = story;
        const columns = transposed(v);
        figure.show({
          items: [
            {
              id: "a",
              name: o.weights,
              symbol: symbols.a,
              tone: "a",
              grid: weights,
              rows: tokens,
              cols: tokens,
              scale: "weight",
              marked: (row, col) => col > row && at(weights, row, col) > 0,
            },
            { operator: operators.times },
            {
              id: "v",
              name: o.values,
              symbol: symbols.v,
              tone: "v",
              grid: v,
              rows: tokens,
              cols: NO_LABELS,
              scale: "signed",
            },
            { operator: operators.equals },
            {
              id: "out",
              name: o.result,
              symbol: symbols.out,
              tone: "o",
              grid: out,
              rows: tokens,
              cols: NO_LABELS,
              scale: "signed",
            },
          ],
          initial: { matrix: "out", row: Math.min(2, tokens.length - 1), col: 0 },
          explain({ matrix, row, col }) {
            const token = tokens[row] ?? "";
            if (matrix === "a") {
              const weight = at(weights, row, col);
              const sentence = t.maskChapter.weightCell(token, tokens[col] ?? "", formatPercent(weight));
              return {
                sentence,
                parts: [result(weight, "a")],
                spoken: sentence,
                links: [
                  { matrix: "v", row: col },
                  { matrix: "out", row },
                ],
              };
            }
            if (matrix === "v") {
              const number = at(v, row, col);
              const sentence = t.projections.cell.v(token, col + 1);
              return {
                sentence,
                parts: [result(number, "v")],
                spoken: `${sentence} ${formatNumber(number)}`,
                links: [{ matrix: "a", col: row }],
              };
            }
            const number = at(out, row, col);
            const sentence = o.cell(token, col + 1);
            return {
              sentence,
              parts: dotProduct(rowOf(weights, row), rowOf(columns, col), ["a", "v"], result(number, "o")),
              spoken: `${sentence} ${formatNumber(number)}`,
              links: [
                { matrix: "a", row },
                { matrix: "v", col },
              ],
            };
          },
        });
      },
    };
  },
};
