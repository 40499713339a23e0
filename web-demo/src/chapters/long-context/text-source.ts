/** Which text is read: the built-in one, or what the reader pastes, opens or drops. */
import { segmented } from "../../view/controls";
import { h } from "../../view/dom";
import type { LongContextMessages } from "./en";
import { SHORTEST, tokensOf } from "./inputs";

/** The first chapters of Moby-Dick (1851, in the public domain): more than the longest length asks for. */
export async function builtInText(): Promise<string> {
  return (await import("./moby-dick.txt?raw")).default;
}

/** What the reader has given, and whether it is read. */
export interface GivenText {
  readonly own: boolean;
  readonly text: string;
}

export interface TextSource {
  readonly element: HTMLElement;
  readonly given: GivenText;
  /** The text to read; null while the reader's own is too short. */
  read(): Promise<string | null>;
}

export function textSource(
  t: LongContextMessages,
  numbers: Intl.NumberFormat,
  changed: () => void,
  given: GivenText = { own: false, text: "" },
): TextSource {
  let { own } = given;
  const area = h("textarea", { rows: 6, placeholder: t.ownPlaceholder, "aria-label": t.own, spellcheck: "false" });
  const hint = h("p", { class: "hint", role: "status" });
  const file = h("input", { type: "file", accept: "text/*,.txt,.md", class: "visually-hidden" });
  const choose = h("label", { class: "pill file" }, file, t.file);
  const place = h("div", { class: "own-text", hidden: true }, area, choose, hint);
  const told = h("p", { class: "hint" }, t.moby);
  let timer = 0;
  const count = () => {
    const { length } = tokensOf(area.value, Number.POSITIVE_INFINITY);
    const short = length < SHORTEST;
    hint.textContent = short ? t.ownShort(SHORTEST, numbers.format(length)) : t.ownHint(numbers.format(length));
    hint.classList.toggle("warning", short && length > 0);
  };
  const typed = (wait: number) => {
    count();
    clearTimeout(timer);
    timer = window.setTimeout(changed, wait);
  };
  const take = async (given: File | undefined) => {
    if (!given) return;
    area.value = await given.text();
    typed(0);
  };
  area.addEventListener("input", () => typed(600));
  file.addEventListener("change", () => void take(file.files?.[0]));
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", (event) => {
    const given = event.dataTransfer?.files[0];
    if (!given) return;
    event.preventDefault();
    void take(given);
  });
  const which = segmented<"moby" | "own">(
    t.text,
    [
      { value: "moby", label: t.mobyShort },
      { value: "own", label: t.own },
    ],
    (choice) => {
      own = choice === "own";
      show();
      if (own) {
        area.focus();
        typed(0);
      } else changed();
    },
    "text-choice",
  );
  const show = () => {
    place.hidden = !own;
    told.hidden = own;
  };
  area.value = given.text;
  if (own) count();
  which.show(own ? "own" : "moby");
  show();
  return {
    element: h("div", { class: "text-source" }, which.element, told, place),
    get given() {
      return { own, text: area.value };
    },
    async read() {
      if (!own) return builtInText();
      return tokensOf(area.value, SHORTEST).length < SHORTEST ? null : area.value;
    },
  };
}
