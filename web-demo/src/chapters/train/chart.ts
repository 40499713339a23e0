/** Loss by step: a line for each run, solid for training, dashed for the honest test, and faint ones for runs of before. */
import { scaleLinear } from "d3-scale";
import { h, svg } from "../../view/dom";
import type { TrainMessages } from "./locales/en";
import type { StepNews } from "./protocol";
import type { Run, TrainingState } from "./training";

const HEIGHT = 320;
const MARGIN = { top: 14, right: 16, bottom: 34, left: 44 };
/** More points than pixels show nothing more: neighbours are drawn as their mean. */
const MOST_POINTS = 700;

interface Line {
  readonly className: string;
  readonly points: readonly (readonly [number, number])[];
}

const trainingPoints = (steps: readonly StepNews[]): [number, number][] => {
  const size = Math.ceil(steps.length / MOST_POINTS);
  const points: [number, number][] = [];
  for (let from = 0; from < steps.length; from += size) {
    const part = steps.slice(from, from + size);
    const mean = (value: (step: StepNews) => number) => part.reduce((sum, step) => sum + value(step), 0) / part.length;
    points.push([mean(({ step }) => step), mean(({ loss }) => loss)]);
  }
  return points;
};

const validationPoints = (steps: readonly StepNews[]): [number, number][] =>
  steps.flatMap(({ step, validation }) => (validation === null ? [] : [[step, validation] as [number, number]]));

const lastValidation = (run: Run | null): number | null =>
  run?.steps.findLast(({ validation }) => validation !== null)?.validation ?? null;

/** Training losses are noisy: the mean of the last steps. */
export const recentLoss = (run: Run | null): number | null => {
  const last = run?.steps.slice(-10) ?? [];
  return last.length > 0 ? last.reduce((sum, { loss }) => sum + loss, 0) / last.length : null;
};

export { lastValidation };

export class ChartView {
  readonly element: HTMLElement;
  readonly #t: TrainMessages["chart"];
  readonly #picture = svg("svg", { role: "img" });
  readonly #legend = h("div", { class: "chart-legend" });
  readonly #table = h("table", { class: "twin" });
  readonly #twin = h("div", { class: "twins" }, this.#table);
  #width = 0;
  #state: TrainingState | null = null;
  #pointed: number | null = null;
  /** How many steps of each run the table has. */
  #tabled = "";

  constructor(t: TrainMessages["chart"]) {
    this.#t = t;
    this.#picture.setAttribute("aria-label", t.label);
    const toggle = h("button", { type: "button", class: "quiet", "aria-expanded": "false" }, t.table);
    toggle.addEventListener("click", () => {
      const open = this.#twin.classList.toggle("open");
      toggle.setAttribute("aria-expanded", String(open));
      toggle.textContent = open ? t.hide : t.table;
    });
    const stage = h("div", { class: "chart-stage" }, this.#picture as unknown as Node);
    this.element = h(
      "figure",
      { class: "chart" },
      h("h3", {}, t.title),
      this.#legend,
      stage,
      h("figcaption", {}, t.hint),
      h("div", { class: "figure-foot" }, h("span", {}), toggle),
      this.#twin,
    );
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry?.contentRect.width ?? 0);
      if (width === this.#width || width === 0) return;
      this.#width = width;
      this.#draw();
    }).observe(stage);
    stage.addEventListener("pointermove", (event) => {
      const { left } = stage.getBoundingClientRect();
      this.#pointed = event.clientX - left;
      this.#draw();
    });
    stage.addEventListener("pointerleave", () => {
      this.#pointed = null;
      this.#draw();
    });
  }

  show(state: TrainingState): void {
    const old = this.#state;
    this.#state = state;
    if (old?.masked === state.masked && old.leaking === state.leaking && old.before === state.before) return;
    this.#draw();
    const evaluated = [state.masked, state.leaking]
      .map((run) => run?.steps.filter(({ validation }) => validation !== null).length)
      .join();
    if (evaluated === this.#tabled) return;
    this.#tabled = evaluated;
    this.#fillTable(state);
  }

  #draw(): void {
    const state = this.#state;
    if (!state || this.#width === 0) return;
    const { masked, leaking, before } = state;
    const steps = masked?.config.steps ?? state.settings.steps;
    const chance = masked?.facts ? Math.log(masked.facts.vocabSize) : null;
    const lines: Line[] = [
      ...before.map((run) => ({ className: "before", points: trainingPoints(run.steps) })),
      ...(leaking
        ? [
            { className: "leaking", points: trainingPoints(leaking.steps) },
            { className: "leaking dashed", points: validationPoints(leaking.steps) },
          ]
        : []),
      ...(masked
        ? [
            { className: "masked", points: trainingPoints(masked.steps) },
            { className: "masked dashed", points: validationPoints(masked.steps) },
          ]
        : []),
    ];
    const top = Math.max(chance ?? 4, ...lines.flatMap(({ points }) => points.map(([, loss]) => loss)));
    const x = scaleLinear([0, steps], [MARGIN.left, this.#width - MARGIN.right]);
    const y = scaleLinear([0, top], [HEIGHT - MARGIN.bottom, MARGIN.top]).nice(5);
    this.#picture.setAttribute("viewBox", `0 0 ${this.#width} ${HEIGHT}`);
    this.#picture.setAttribute("height", String(HEIGHT));
    const children: SVGElement[] = [...this.#axes(x, y, steps), ...this.#chance(chance, y)];
    for (const { className, points } of lines) {
      if (points.length === 0) continue;
      const d = points.map(([step, loss], at) => `${at === 0 ? "M" : "L"}${x(step).toFixed(1)} ${y(loss).toFixed(1)}`);
      children.push(svg("path", { class: `loss ${className}`, d: d.join("") }));
      const [first] = points;
      if (points.length === 1 && first)
        children.push(svg("circle", { class: `dot-of ${className}`, cx: x(first[0]), cy: y(first[1]), r: 2.5 }));
    }
    const step = this.#pointed === null ? null : Math.round(x.invert(this.#pointed));
    const inside = step !== null && step >= 1 && step <= (masked?.steps.length ?? 0) ? step : null;
    if (inside !== null)
      children.push(
        svg("line", { class: "cursor", x1: x(inside), x2: x(inside), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }),
      );
    this.#picture.replaceChildren(...children);
    this.#tell(state, inside);
  }

  #axes(
    x: (value: number) => number,
    y: ((value: number) => number) & { ticks(count: number): number[] },
    steps: number,
  ): SVGElement[] {
    const right = this.#width - MARGIN.right;
    const marks: SVGElement[] = [];
    const write = (text: string, place: Record<string, string | number>) => {
      const element = svg("text", place);
      element.textContent = text;
      marks.push(element);
    };
    for (const tick of y.ticks(5)) {
      marks.push(svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y(tick), y2: y(tick) }));
      write(String(tick), { class: "tick", x: MARGIN.left - 9, y: y(tick) + 4, "text-anchor": "end" });
    }
    const ticks = scaleLinear([0, steps], [0, 1])
      .ticks(Math.max(2, Math.floor(this.#width / 90)))
      .filter(Number.isInteger);
    for (const tick of ticks)
      write(String(tick), { class: "tick", x: x(tick), y: HEIGHT - MARGIN.bottom + 20, "text-anchor": "middle" });
    return marks;
  }

  #chance(chance: number | null, y: (value: number) => number): SVGElement[] {
    if (chance === null) return [];
    const right = this.#width - MARGIN.right;
    const text = svg("text", { class: "tick chance", x: right, y: y(chance) - 6, "text-anchor": "end" });
    text.textContent = this.#t.chance;
    return [svg("line", { class: "chance", x1: MARGIN.left, x2: right, y1: y(chance), y2: y(chance) }), text];
  }

  /** The legend says the numbers, too: at the step that is pointed at, or now. */
  #tell({ masked, leaking, before }: TrainingState, step: number | null): void {
    const t = this.#t;
    const row = (className: string, name: string, run: Run) => {
      const training = step === null ? recentLoss(run) : (run.steps[step - 1]?.loss ?? null);
      const validation =
        step === null
          ? lastValidation(run)
          : (run.steps.slice(0, step).findLast((one) => one.validation !== null)?.validation ?? null);
      const number = (value: number | null) => (value === null ? t.none : value.toFixed(2));
      return h(
        "p",
        { class: `legend-row ${className}` },
        h("b", {}, name),
        h(
          "span",
          {},
          h("i", { class: "solid" }),
          `${t.training} `,
          h("data", { value: training ?? "" }, number(training)),
        ),
        h(
          "span",
          {},
          h("i", { class: "dashes" }),
          `${t.validation} `,
          h("data", { value: validation ?? "" }, number(validation)),
        ),
      );
    };
    this.#legend.replaceChildren(
      ...(masked ? [row("masked", t.masked, masked)] : []),
      ...(leaking ? [row("leaking", t.leaking, leaking)] : []),
      ...before.map((run) => row("before", t.before(run.config.heads), run)),
    );
  }

  #fillTable({ masked, leaking }: TrainingState): void {
    const t = this.#t;
    const runs = [
      ["masked", t.masked, masked],
      ["leaking", t.leaking, leaking],
    ] as const;
    const there = runs.filter(([, , run]) => run !== null);
    const shown = (masked?.steps ?? []).filter(({ validation }) => validation !== null);
    const cell = (value: number | null | undefined, which: string) =>
      h(
        "td",
        {},
        value === null || value === undefined ? t.none : h("data", { value, "data-run": which }, value.toFixed(3)),
      );
    this.#table.replaceChildren(
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, t.step),
          ...there.flatMap(([, name]) => [
            h("th", { scope: "col" }, `${name}: ${t.training}`),
            h("th", { scope: "col" }, `${name}: ${t.validation}`),
          ]),
        ),
      ),
      h(
        "tbody",
        {},
        ...shown.map(({ step }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, String(step)),
            ...there.flatMap(([which, , run]) => [
              cell(run?.steps[step - 1]?.loss, which),
              cell(run?.steps[step - 1]?.validation, which),
            ]),
          ),
        ),
      ),
    );
  }
}
