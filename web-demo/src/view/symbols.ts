/** Mathematical names as small pieces of markup, coloured as in the text. */
const italic = (letter: string, tone: string, rest = "") => `<span class="symbol ${tone}"><i>${letter}</i>${rest}</span>`;
const root = '<span class="root">√<i>d</i></span>';

export const symbols = {
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
  concat: `<span class="symbol">Concat</span>`,
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

/** The whole formula, in MathML. */
export function formula(label: string): string {
  const mi = (letter: string, tone = "") => `<mi class="${tone}" mathvariant="normal">${letter}</mi>`;
  return `<math display="block" aria-label="${label}"><mrow>
    <mi class="word">Attention</mi><mo stretchy="false">(</mo>${mi("Q", "q")}<mo>,</mo>${mi("K", "k")}<mo>,</mo>${mi("V", "v")}<mo stretchy="false">)</mo>
    <mo>=</mo><mi class="word">softmax</mi><mo stretchy="true">(</mo>
    <mfrac><mrow>${mi("Q", "q")}<msup>${mi("K", "k")}<mo>⊤</mo></msup></mrow><msqrt>${mi("d")}</msqrt></mfrac>
    <mo>+</mo>${mi("M", "m")}<mo stretchy="true">)</mo><mo>&#x2062;</mo>${mi("V", "v")}
  </mrow></math>`;
}
