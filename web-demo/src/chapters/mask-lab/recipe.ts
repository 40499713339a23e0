/** A mask as the reader puts it together: terms joined by and/or, then single places drawn by hand. What it makes, and as which code. */
import { type Mask, masks } from "lookback";

export const KINDS = [
  "everything",
  "nothing",
  "causal",
  "window",
  "dilated",
  "prefix",
  "documents",
  "padding",
] as const;
export type Kind = (typeof KINDS)[number];

export interface Term {
  /** How it joins the terms before it; of no meaning in the first. */
  readonly op: "and" | "or";
  readonly not: boolean;
  readonly kind: Kind;
  /** What PARAMETERS says of the kind; of documents their lengths. */
  readonly numbers: readonly number[];
}

/** [query, key]. */
export type Place = readonly [number, number];

export interface Recipe {
  readonly length: number;
  readonly terms: readonly Term[];
  /** Places shown or hidden by hand, whatever the terms say. */
  readonly shown: readonly Place[];
  readonly hidden: readonly Place[];
}

export const SHORTEST = 2;
export const LONGEST = 24;

export interface Parameter {
  readonly name: "left" | "right" | "step" | "prefixLength" | "tokens";
  readonly least: number;
  /** May be Infinity, the empty field. */
  readonly open: boolean;
  readonly start: (length: number) => number;
}

export const PARAMETERS: Readonly<Record<Kind, readonly Parameter[]>> = {
  everything: [],
  nothing: [],
  causal: [],
  window: [
    { name: "left", least: 0, open: true, start: () => 2 },
    { name: "right", least: 0, open: true, start: () => 0 },
  ],
  dilated: [{ name: "step", least: 1, open: false, start: () => 2 }],
  prefix: [{ name: "prefixLength", least: 0, open: false, start: (length) => Math.ceil(length / 3) }],
  documents: [],
  padding: [{ name: "tokens", least: 0, open: false, start: (length) => Math.ceil((2 * length) / 3) }],
};

export function newTerm(kind: Kind, length: number, op: Term["op"] = "and", not = false): Term {
  const third = Math.max(1, Math.round(length / 3));
  const numbers =
    kind === "documents" ? [third, Math.max(1, third - 1)] : PARAMETERS[kind].map(({ start }) => start(length));
  return { op, not, kind, numbers };
}

/** The document of each token; what the lengths leave over is one more document. */
export function documentIds(lengths: readonly number[], length: number): number[] {
  const ids = lengths.flatMap((size, id) => new Array<number>(size).fill(id)).slice(0, length);
  return [...ids, ...new Array<number>(length - ids.length).fill(lengths.length)];
}

/** A term without its `not`: the mask, and the code that gives it. */
function call({ kind, numbers }: Term, length: number): { mask: Mask; code: string } {
  const [first = 0, second = 0] = numbers;
  switch (kind) {
    case "everything":
      return { mask: masks.from([length, length], () => true), code: `masks.from([${length}, ${length}], () => true)` };
    case "nothing":
      return {
        mask: masks.from([length, length], () => false),
        code: `masks.from([${length}, ${length}], () => false)`,
      };
    case "causal":
      return { mask: masks.causal(length), code: `masks.causal(${length})` };
    case "window":
      return {
        mask: masks.window(length, { left: first, right: second }),
        code: `masks.window(${length}, { left: ${first}, right: ${second} })`,
      };
    case "dilated":
      return { mask: masks.dilated(length, { step: first }), code: `masks.dilated(${length}, { step: ${first} })` };
    case "prefix":
      return { mask: masks.prefix(length, first), code: `masks.prefix(${length}, ${first})` };
    case "documents": {
      const ids = documentIds(numbers, length);
      return { mask: masks.documents(ids), code: `masks.documents([${ids.join(", ")}])` };
    }
    case "padding": {
      const tokens = Math.min(first, length);
      return { mask: masks.padding([tokens], length), code: `masks.padding([${tokens}], ${length})` };
    }
  }
}

/** The terms alone. Padding says nothing of queries, so where it comes first it is joined to a mask of all places. */
function steps(recipe: Recipe): { op: "and" | "or"; mask: Mask; code: string }[] {
  const { length, terms } = recipe;
  const list = terms.map((term) => {
    const { mask, code } = call(term, length);
    return { op: term.op, mask: term.not ? mask.not() : mask, code: term.not ? `${code}.not()` : code };
  });
  const [first] = list;
  if (first && first.mask.dims.length === 2) return list;
  const all = call(newTerm("everything", length), length);
  return [{ op: "and", ...all }, ...list.map((step, index) => (index === 0 ? { ...step, op: "and" as const } : step))];
}

function joined(list: readonly { op: "and" | "or"; mask: Mask }[]): Mask {
  const [first, ...rest] = list;
  if (!first) throw new RangeError("a recipe needs a term");
  return rest.reduce((mask, { op, mask: next }) => (op === "and" ? mask.and(next) : mask.or(next)), first.mask);
}

const flat = (mask: Mask, length: number): Mask => masks.from({ data: mask.data, dims: [length, length] });

/** What the terms alone show, [L, L]. */
export function composed(recipe: Recipe): Mask {
  return flat(joined(steps(recipe)), recipe.length);
}

function places(list: readonly Place[], length: number): { mask: Mask; code: string } {
  return {
    mask: masks.from([length, length], (i, j) => list.some(([row, key]) => row === i && key === j)),
    code: `at(${list.map(([row, key]) => `[${row}, ${key}]`).join(", ")})`,
  };
}

/** The whole mask, [L, L]. */
export function maskOf(recipe: Recipe): Mask {
  const { length, shown, hidden } = recipe;
  const drawn = composed(recipe).or(places(shown, length).mask).and(places(hidden, length).mask.not());
  return flat(drawn, length);
}

/** JavaScript whose `mask` has just these places. */
export function codeOf(recipe: Recipe): string {
  const { length, shown, hidden } = recipe;
  const [first, ...rest] = steps(recipe);
  const lines = rest.map(({ op, code }) => `  .${op}(${code})`);
  if (shown.length > 0) lines.push(`  .or(${places(shown, length).code})`);
  if (hidden.length > 0) lines.push(`  .and(${places(hidden, length).code}.not())`);
  const helper =
    shown.length + hidden.length > 0
      ? `const at = (...places) =>\n  masks.from([${length}, ${length}], (i, j) => places.some(([query, key]) => query === i && key === j));\n\n`
      : "";
  return `import { masks } from "lookback";\n\n${helper}const mask = ${[first?.code, ...lines].join("\n")};\n`;
}

/** With these places shown or hidden by hand; what the terms say already needs no hand. */
export function drawnOn(recipe: Recipe, cells: readonly Place[], visible: boolean): Recipe {
  const base = composed(recipe);
  const same = ([row, key]: Place) => cells.some(([i, j]) => i === row && j === key);
  const others = (list: readonly Place[]) => list.filter((place) => !same(place));
  const forced = cells.filter(([row, key]) => base.visible(row, key) !== visible);
  return {
    ...recipe,
    shown: visible ? [...others(recipe.shown), ...forced] : others(recipe.shown),
    hidden: visible ? others(recipe.hidden) : [...others(recipe.hidden), ...forced],
  };
}

/** Another length keeps what still has a place. */
export function resized(recipe: Recipe, length: number): Recipe {
  const inside = (list: readonly Place[]) => list.filter(([row, key]) => row < length && key < length);
  return { ...recipe, length, shown: inside(recipe.shown), hidden: inside(recipe.hidden) };
}

export const PRESETS = ["causal", "window", "prefix", "packed", "padded", "dilated", "inverted", "blank"] as const;
export type Preset = (typeof PRESETS)[number];

export function preset(name: Preset, length: number): Recipe {
  const make = (...terms: Term[]): Recipe => ({ length, terms, shown: [], hidden: [] });
  const causal = newTerm("causal", length);
  switch (name) {
    case "causal":
      return make(causal);
    case "window":
      return make(causal, { op: "and", not: false, kind: "window", numbers: [2, Number.POSITIVE_INFINITY] });
    case "prefix":
      return make(newTerm("prefix", length));
    case "packed":
      return make(newTerm("documents", length), causal);
    case "padded":
      return make(causal, newTerm("padding", length));
    case "dilated":
      return make(causal, newTerm("dilated", length));
    case "inverted":
      return make({ ...causal, not: true });
    case "blank":
      return make(newTerm("nothing", length));
  }
}

/** In the address: n=8, each term as m=and.not.window.2.0 (* = no limit), drawn places as on=0-3.1-4 and off=… */
export function writeRecipe(recipe: Recipe): URLSearchParams {
  const out = new URLSearchParams({ n: String(recipe.length) });
  for (const { op, not, kind, numbers } of recipe.terms) {
    const values = numbers.map((value) => (Number.isFinite(value) ? String(value) : "*"));
    out.append("m", [op, ...(not ? ["not"] : []), kind, ...values].join("."));
  }
  const list = (name: string, cells: readonly Place[]) => {
    if (cells.length > 0) out.set(name, cells.map((place) => place.join("-")).join("."));
  };
  list("on", recipe.shown);
  list("off", recipe.hidden);
  return out;
}

/** What an address asks for; what it asks in vain is left out. */
export function readRecipe(given: URLSearchParams): Recipe {
  const asked = Number(given.get("n") ?? Number.NaN);
  const length = Number.isInteger(asked) && asked >= SHORTEST && asked <= LONGEST ? asked : 8;
  const terms = given.getAll("m").flatMap((text) => readTerm(text, length) ?? []);
  const list = (name: string): Place[] =>
    (given.get(name) ?? "").split(".").flatMap((text) => {
      const [row = -1, key = -1] = text === "" ? [] : text.split("-").map(Number);
      const inside = (index: number) => Number.isInteger(index) && index >= 0 && index < length;
      return inside(row) && inside(key) ? [[row, key] as const] : [];
    });
  if (terms.length === 0) return { ...preset("causal", length), shown: list("on"), hidden: list("off") };
  return { length, terms, shown: list("on"), hidden: list("off") };
}

function readTerm(text: string, length: number): Term | null {
  const words = text.split(".");
  const op = words.shift();
  const not = words[0] === "not";
  if (not) words.shift();
  const kind = KINDS.find((each) => each === words[0]);
  if (!kind || (op !== "and" && op !== "or")) return null;
  const values = words.slice(1).map((word) => (word === "*" ? Number.POSITIVE_INFINITY : Number(word)));
  const whole = (value: number, least: number) => Number.isInteger(value) && value >= least;
  const good =
    kind === "documents"
      ? values.every((value) => whole(value, 1))
      : values.length === PARAMETERS[kind].length &&
        PARAMETERS[kind].every(({ least, open }, index) => {
          const value = values[index] ?? Number.NaN;
          return whole(value, least) || (open && value === Number.POSITIVE_INFINITY);
        });
  return good ? { op, not, kind, numbers: values } : newTerm(kind, length, op, not);
}
