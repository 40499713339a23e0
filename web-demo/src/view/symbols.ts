/** Mathematical names as small pieces of markup, coloured as in the text. */
const italic = (letter: string, tone: string, rest = "") =>
  `<span class="symbol ${tone}"><i>${letter}</i>${rest}</span>`;
const root =
  '<span class="root"><svg viewBox="0 0 10 18" aria-hidden="true"><path d="M0.6 10.6 L2.4 9.4 L5 16.6 L9.4 0.65 H10"/></svg><i>d</i></span>';

export const symbols = {
  root,
  x: italic("X", "x"),
  q: italic("Q", "q"),
  k: italic("K", "k"),
  v: italic("V", "v"),
  kt: italic("K", "k", "<sup>⊤</sup>"),
  wq: italic("W", "q", "<sub>Q</sub>"),
  wk: italic("W", "k", "<sub>K</sub>"),
  wv: italic("W", "v", "<sub>V</sub>"),
  wo: italic("W", "o", "<sub>O</sub>"),
  raw: `<span class="symbol"><i>Q</i><i>K</i><sup>⊤</sup></span>`,
  scaled: `<span class="symbol"><i>S</i> = <i>Q</i><i>K</i><sup>⊤</sup>/${root}</span>`,
  s: italic("S", "s"),
  m: italic("M", "m"),
  masked: `<span class="symbol"><i>S</i> + <i class="m">M</i></span>`,
  a: italic("A", "a"),
  out: `<span class="symbol"><i>A</i><i class="v">V</i></span>`,
  y: italic("Y", "o"),
  head: (index: number) => italic("A", "a", `<sub>${index}</sub>`),
} as const;

export const operators = {
  times: "·",
  equals: "=",
  plus: "+",
  divide: `<span class="step"><span>÷ ${root}</span><span class="arrow">→</span></span>`,
  softmax: '<span class="step"><span>softmax</span><span class="arrow">→</span></span>',
  none: "",
} as const;

/** The whole formula, set with plain elements: MathML needs a mathematical font for roots and tall brackets, and few machines have one. */
export function formula(label: string): string {
  const letter = (name: string, tone = "") => `<i class="${tone}">${name}</i>`;
  return `<span class="equation" role="math" aria-label="${label}"><span class="run"><span class="word">Attention</span>(${letter("Q", "q")}, ${letter("K", "k")}, ${letter("V", "v")})</span>
    <span class="relation">=</span> <span class="run"><span class="word">softmax</span><span class="tall">(</span><span class="fraction"><span>${letter("Q", "q")}${letter("K", "k")}<sup>⊤</sup></span><span>${root}</span></span>
    <span class="relation">+</span>${letter("M", "m")}<span class="tall">)</span>${letter("V", "v")}</span></span>`;
}
