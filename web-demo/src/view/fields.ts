/** Labelled fields, all of them native; each shows a value that was chosen elsewhere without disturbing who types. */
import type { Control } from "./controls";
import { h } from "./dom";

let names = 0;
const nextId = () => `field-${++names}`;

interface Words {
  readonly label: string;
  readonly hint?: string;
}

function labelled(words: Words, id: string, className: string, ...children: (Node | null)[]): HTMLElement {
  return h(
    "div",
    { class: `labelled ${className}`.trim(), title: words.hint },
    h("label", { for: id }, words.label),
    ...children,
  );
}

/** A slider that says its value beside its name. */
export function range(
  words: Words,
  limits: { readonly min: number; readonly max: number; readonly step: number },
  format: (value: number) => string,
  choose: (value: number) => void,
): Control<number> {
  const id = nextId();
  const input = h("input", { type: "range", id, ...limits, "aria-description": words.hint });
  const output = h("output", { for: id });
  const tell = (value: number) => {
    output.textContent = format(value);
    input.setAttribute("aria-valuetext", format(value));
  };
  input.addEventListener("input", () => {
    tell(input.valueAsNumber);
    choose(input.valueAsNumber);
  });
  return {
    element: labelled(words, id, "range", output, input),
    show(value) {
      input.valueAsNumber = value;
      tell(value);
    },
  };
}

/** A whole number; what is out of its limits is not taken, and marked. */
export function wholeNumber(
  words: Words,
  limits: { readonly min: number; readonly max: number },
  choose: (value: number) => void,
): Control<number> {
  const id = nextId();
  const input = h("input", { type: "number", id, step: 1, ...limits, "aria-description": words.hint });
  input.addEventListener("input", () => {
    const fits = input.value !== "" && input.validity.valid;
    input.toggleAttribute("aria-invalid", !fits);
    if (fits) choose(input.valueAsNumber);
  });
  return {
    element: labelled(words, id, "number", input),
    show(value) {
      if (input.valueAsNumber !== value && document.activeElement !== input) input.valueAsNumber = value;
    },
  };
}

export interface Choice<T> extends Control<T> {
  /** Other options, such as those of another model. */
  offer(options: readonly { readonly value: T; readonly label: string }[]): void;
}

export function choice<T extends string>(words: Words, choose: (value: T) => void): Choice<T> {
  const id = nextId();
  const select = h("select", { id, "aria-description": words.hint });
  select.addEventListener("change", () => choose(select.value as T));
  return {
    element: labelled(words, id, "choice", select),
    offer(options) {
      select.replaceChildren(...options.map(({ value, label }) => h("option", { value }, label)));
    },
    show(value) {
      select.value = value;
    },
  };
}

/** Several lines of text. */
export function textArea(
  words: Words,
  rows: number,
  change: (text: string) => void,
): Control<string> & {
  readonly input: HTMLTextAreaElement;
  tell(hint: string): void;
  warn(message: string | null): void;
} {
  const id = nextId();
  const input = h("textarea", { id, rows, spellcheck: "false", autocomplete: "off", "aria-describedby": `${id}-hint` });
  input.addEventListener("input", () => change(input.value));
  const hint = h("p", { class: "hint", id: `${id}-hint` }, words.hint ?? "");
  return {
    input,
    element: h("div", { class: "labelled area" }, h("label", { for: id }, words.label), input, hint),
    show(text) {
      // Never under the reader's fingers: the caret would jump, and an input method would lose its unfinished word.
      if (input.value !== text) input.value = text;
    },
    tell(text) {
      hint.textContent = text;
    },
    warn(message) {
      hint.textContent = message ?? words.hint ?? "";
      hint.classList.toggle("warning", message !== null);
      input.toggleAttribute("aria-invalid", message !== null);
    },
  };
}
