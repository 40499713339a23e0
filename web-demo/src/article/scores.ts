import { at, largest, rowOf, transposed } from "../engine/grid";
import { FigureView } from "../view/figure";
import { formatNumber } from "../view/format";
import { dotProduct, result, text, value } from "../view/inspector";
import { operators, symbols } from "../view/symbols";
import type { Section } from "./app";
import { articleSection, NO_LABELS } from "./parts";

export const scores: Section = {
  id: "scores",
  nav: (t) => t.scores.nav,
  mount({ t, figures }) {
    const s = t.scores;
    const figure = new FigureView(s.caption, figures);
    return {
      element: articleSection("scores", s.title, s.body, figure.element),
      figures: [figure],
      update({ story }) {
        const { tokens, q, k, raw, scaled } = story;
        const extent = largest(raw) || 1;
        figure.show({
          items: [
            {
              id: "q",
              name: t.projections.result.q,
              symbol: symbols.q,
              tone: "q",
              grid: q,
              rows: tokens,
              cols: NO_LABELS,
              scale: "signed",
            },
            { operator: operators.times },
            {
              id: "kt",
              name: s.kt,
              symbol: symbols.kt,
              tone: "k",
              grid: transposed(k),
              rows: NO_LABELS,
              cols: tokens,
              scale: "signed",
            },
            { operator: operators.equals },
            {
              id: "raw",
              name: s.raw,
              symbol: symbols.raw,
              tone: "s",
              grid: raw,
              rows: tokens,
              cols: tokens,
              scale: "signed",
              extent,
            },
            { operator: operators.divide },
            {
              id: "scaled",
              name: s.scaled,
              symbol: symbols.s,
              tone: "s",
              grid: scaled,
              rows: tokens,
              cols: tokens,
              scale: "signed",
              extent,
            },
          ],
          initial: { matrix: "raw", row: Math.min(3, tokens.length - 1), col: Math.min(1, tokens.length - 1) },
          explain({ matrix, row, col }) {
            const asks = tokens[row] ?? "";
            const asked = tokens[col] ?? "";
            if (matrix === "q" || matrix === "kt") {
              const number = matrix === "q" ? at(q, row, col) : at(k, col, row);
              const sentence =
                matrix === "q" ? t.projections.cell.q(asks, col + 1) : t.projections.cell.k(asked, row + 1);
              return {
                sentence,
                parts: [result(number, matrix === "q" ? "q" : "k")],
                spoken: `${sentence} ${formatNumber(number)}`,
                links: [matrix === "q" ? { matrix: "raw", row } : { matrix: "raw", col }],
              };
            }
            const before = at(raw, row, col);
            if (matrix === "scaled") {
              const after = at(scaled, row, col);
              const sentence = s.scaledCell(asks, asked);
              return {
                sentence,
                parts: [value(before, "s"), text(`÷ √${q.cols} =`), result(after, "s")],
                spoken: `${sentence} ${formatNumber(after)}`,
                links: [{ matrix: "raw", row, col }],
              };
            }
            const sentence = s.rawCell(asks, asked);
            return {
              sentence,
              parts: dotProduct(rowOf(q, row), rowOf(k, col), ["q", "k"], result(before, "s")),
              spoken: `${sentence} ${formatNumber(before)}`,
              links: [
                { matrix: "q", row },
                { matrix: "kt", col },
              ],
            };
          },
        });
      },
    };
  },
};
