import { at } from "../engine/grid";
import { FigureView } from "../view/figure";
import { result } from "../view/inspector";
import { symbols } from "../view/symbols";
import type { Section } from "./app";
import { articleSection, NO_LABELS } from "./parts";

export const words: Section = {
  id: "words",
  nav: (t) => t.words.nav,
  mount({ t, figures }) {
    const figure = new FigureView(t.words.caption, figures);
    return {
      element: articleSection("words", t.words.title, t.words.body, figure.element),
      figures: [figure],
      update({ story }) {
        const { tokens, x } = story;
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
          ],
          initial: { matrix: "x", row: 0, col: 0 },
          explain({ row, col }) {
            const sentence = t.words.cell(tokens[row] ?? "", col + 1);
            const value = at(x, row, col);
            return { sentence, parts: [result(value, "x")], spoken: `${sentence} ${value.toFixed(2)}`, links: [] };
          },
        });
      },
    };
  },
};
