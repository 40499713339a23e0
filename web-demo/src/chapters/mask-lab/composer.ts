/** The terms of a recipe as a list of controls. */
import { h } from "../../view/dom";
import type { MaskLabMessages } from "./en";
import { KINDS, type Kind, newTerm, PARAMETERS, type Recipe, type Term } from "./recipe";

type Change = (terms: readonly Term[]) => void;

function select<T extends string>(
  label: string,
  options: readonly (readonly [T, string])[],
  value: T,
  choose: (value: T) => void,
): HTMLElement {
  const element = h("select", { "aria-label": label });
  for (const [name, words] of options) element.append(h("option", { value: name, selected: name === value }, words));
  element.addEventListener("change", () => choose(element.value as T));
  return element;
}

function numberField(
  label: string,
  value: number,
  { least, most, open, none }: { least: number; most: number; open: boolean; none: string },
  choose: (value: number) => void,
): HTMLElement {
  const input = h("input", {
    type: "number",
    min: least,
    max: most,
    step: 1,
    inputmode: "numeric",
    placeholder: open ? none : undefined,
    value: Number.isFinite(value) ? String(value) : "",
  });
  input.addEventListener("change", () => {
    if (open && input.value === "") return choose(Number.POSITIVE_INFINITY);
    const asked = Math.round(input.valueAsNumber);
    if (Number.isNaN(asked)) input.value = Number.isFinite(value) ? String(value) : "";
    else choose(Math.max(least, Math.min(most, asked)));
  });
  return h("label", { class: "term-number" }, h("span", {}, label), input);
}

/** The lengths of packed documents, as "3, 2". */
function documentsField(t: MaskLabMessages, term: Term, choose: (numbers: readonly number[]) => void): HTMLElement {
  const input = h("input", { type: "text", value: term.numbers.join(", "), inputmode: "numeric", autocomplete: "off" });
  input.addEventListener("change", () => {
    const lengths = input.value.split(/[\s,，、;]+/).filter((word) => word !== "");
    const numbers = lengths.map(Number);
    const good = numbers.every((value) => Number.isInteger(value) && value >= 1);
    input.toggleAttribute("aria-invalid", !good);
    if (good) choose(numbers);
  });
  return h("label", { class: "term-number wide" }, h("span", {}, t.parameters.documents), input);
}

function termRow(t: MaskLabMessages, recipe: Recipe, index: number, change: Change): HTMLElement {
  const { terms, length } = recipe;
  const term = terms[index] as Term;
  const put = (next: Term) => change(terms.map((each, at) => (at === index ? next : each)));
  const operator =
    index === 0
      ? h("span", { class: "term-first" }, t.first)
      : select(
          t.operator,
          [
            ["and", t.and],
            ["or", t.or],
          ],
          term.op,
          (op) => put({ ...term, op }),
        );
  const not = h("input", { type: "checkbox", checked: term.not });
  not.addEventListener("change", () => put({ ...term, not: not.checked }));
  const fields =
    term.kind === "documents"
      ? [documentsField(t, term, (numbers) => put({ ...term, numbers }))]
      : PARAMETERS[term.kind].map(({ name, least, open }, place) =>
          numberField(
            t.parameters[name],
            term.numbers[place] ?? least,
            { least, most: length, open, none: t.unlimited },
            (value) => put({ ...term, numbers: term.numbers.map((each, at) => (at === place ? value : each)) }),
          ),
        );
  const remove = h(
    "button",
    { type: "button", class: "quiet term-remove", "aria-label": t.remove(t.kinds[term.kind]) },
    "✕",
  );
  remove.addEventListener("click", () => change(terms.filter((_, at) => at !== index)));
  remove.hidden = terms.length === 1;
  return h(
    "li",
    { class: "term-row" },
    operator,
    h("label", { class: "term-not" }, not, h("span", {}, t.not)),
    select<Kind>(
      t.kind,
      KINDS.map((kind) => [kind, t.kinds[kind]] as const),
      term.kind,
      (kind) => put(newTerm(kind, length, term.op, term.not)),
    ),
    h("div", { class: "term-fields" }, ...fields),
    remove,
  );
}

export interface Composer {
  readonly element: HTMLElement;
  show(recipe: Recipe): void;
}

export function createComposer(t: MaskLabMessages, change: Change): Composer {
  const list = h("ol", { class: "terms" });
  const add = h("button", { type: "button", class: "quiet" }, t.add);
  let recipe: Recipe | null = null;
  let shown = "";
  add.addEventListener("click", () => {
    if (recipe) change([...recipe.terms, newTerm("window", recipe.length)]);
  });
  return {
    element: h("div", { class: "composer" }, h("h2", {}, t.composeTitle), list, add),
    show(next) {
      recipe = next;
      const state = JSON.stringify([next.length, next.terms.map((term) => [...Object.values(term)].map(String))]);
      // While only places are drawn the controls stay as they are.
      if (state === shown) return;
      shown = state;
      const focused = [...list.querySelectorAll("select, input, button")].indexOf(document.activeElement as Element);
      list.replaceChildren(...next.terms.map((_, index) => termRow(t, next, index, change)));
      if (focused >= 0) list.querySelectorAll<HTMLElement>("select, input, button")[focused]?.focus();
    },
  };
}
