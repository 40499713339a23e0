/** Form controls, all of them native: the browser brings the keyboard and the screen reader. */
import { h } from "./dom";

let names = 0;

export interface Control<T> {
  readonly element: HTMLElement;
  /** Shows a value that was chosen elsewhere. */
  show(value: T): void;
}

export function segmented<T extends string>(
  legend: string,
  options: readonly { readonly value: T; readonly label: string }[],
  choose: (value: T) => void,
  className = "",
): Control<T> {
  const name = `choice-${++names}`;
  const inputs = options.map(({ value }) =>
    h("input", { type: "radio", name, value, class: "visually-hidden", onchange: () => choose(value) }),
  );
  const element = h(
    "fieldset",
    { class: `segmented ${className}`.trim() },
    h("legend", {}, legend),
    h(
      "div",
      { class: "segments" },
      ...options.map(({ label, value }, index) =>
        h("label", { "data-value": value }, inputs[index] ?? null, h("span", {}, label)),
      ),
    ),
  );
  return {
    element,
    show(value) {
      for (const input of inputs) input.checked = input.value === value;
    },
  };
}

export function slider(
  label: string,
  range: { readonly min: number; readonly max: number; readonly step?: number; readonly marks?: boolean },
  spoken: (value: number) => string,
  choose: (value: number) => void,
): Control<number> & { readonly output: HTMLOutputElement; range(min: number, max: number): void } {
  const id = `slider-${++names}`;
  const input = h("input", { type: "range", id, min: range.min, max: range.max, step: range.step ?? 1 });
  input.addEventListener("input", () => choose(input.valueAsNumber));
  const output = h("output", { for: id });
  const marks = h("div", { class: "marks", "aria-hidden": "true" });
  marks.hidden = range.marks === false;
  for (let value = range.min; value <= range.max && !marks.hidden; value++) marks.append(h("span", {}, String(value)));
  const element = h(
    "div",
    { class: "slider" },
    h("label", { for: id }, label),
    h("div", { class: "track" }, input, marks),
    output,
  );
  return {
    element,
    output,
    range(min, max) {
      input.min = String(min);
      input.max = String(max);
    },
    show(value) {
      input.value = String(value);
      input.setAttribute("aria-valuetext", spoken(value));
    },
  };
}

export function textField(
  words: { readonly label: string; readonly reset: string; readonly hint: string; readonly empty: string },
  change: (text: string) => void,
  builtIn: () => string,
): Control<string> & { warn(empty: boolean): void } {
  const id = `text-${++names}`;
  const input = h("input", {
    type: "text",
    id,
    maxlength: 120,
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": `${id}-hint`,
  });
  input.addEventListener("input", () => change(input.value));
  const hint = h("p", { class: "hint", id: `${id}-hint` }, words.hint);
  const reset = h("button", { type: "button", class: "quiet", onclick: () => change(builtIn()) }, words.reset);
  return {
    element: h(
      "div",
      { class: "field" },
      h("label", { for: id }, words.label),
      h("div", { class: "field-line" }, input, reset),
      hint,
    ),
    show(text) {
      // Never under the reader's fingers: the caret would jump, and an input method would lose its unfinished word.
      if (input.value !== text && input.value.trim() !== text) input.value = text;
      reset.hidden = text === builtIn();
    },
    warn(empty) {
      hint.textContent = empty ? words.empty : words.hint;
      hint.classList.toggle("warning", empty);
      input.toggleAttribute("aria-invalid", empty);
    },
  };
}

export function checkbox(label: string, choose: (checked: boolean) => void): Control<boolean> {
  const input = h("input", { type: "checkbox" });
  input.addEventListener("change", () => choose(input.checked));
  return {
    element: h("label", { class: "checkbox" }, input, h("span", {}, label)),
    show(checked) {
      input.checked = checked;
    },
  };
}
