import { fail, kindOf, refuse, show } from "./errors.js";

/** Reads one option: gives the value to use, or throws. `where` is how the message names it. */
export type Reader<T> = (value: unknown, where: string) => T;
export type OptionTable = Record<string, Reader<unknown>>;
export type OptionsOf<Table extends OptionTable> = {
  [Name in keyof Table]?: ReturnType<Table[Name]> | undefined;
};

/** For options that another file checks, because it takes the shapes of the call to do so. */
export const later =
  <T>(): Reader<T> =>
  (value) =>
    value as T;

/** A rule for numbers, told in words: `number("an integer ≥ 1", …)`. */
export const number =
  (accepted: string, accepts: (value: number) => boolean): Reader<number> =>
  (value, where) =>
    typeof value === "number" && accepts(value) ? value : refuse("bad-option", where, accepted, value);

export const MAX_SIZE = 2 ** 31 - 1;
export const positiveInteger = number("an integer ≥ 1", (n) => Number.isInteger(n) && n >= 1 && n <= MAX_SIZE);
export const positive = number("a number > 0", (n) => n > 0 && n < Infinity);
export const count = number("an integer ≥ 0", (n) => Number.isInteger(n) && n >= 0 && n <= MAX_SIZE);
export const countOrInfinity = number(
  "an integer ≥ 0, or Infinity for no limit",
  (n) => n === Infinity || (Number.isInteger(n) && n >= 0 && n <= MAX_SIZE),
);
export const integer = number("a safe integer", Number.isSafeInteger);
export const finite = number("a finite number", Number.isFinite);
export const notNegative = number("a finite number ≥ 0 (0 = none)", (n) => Number.isFinite(n) && n >= 0);

export const flag: Reader<boolean> = (value, where) =>
  typeof value === "boolean" ? value : refuse("bad-option", where, "true or false", value);

export const oneOf =
  <Name extends string>(...names: readonly Name[]): Reader<Name> =>
  (value, where) =>
    names.includes(value as Name)
      ? (value as Name)
      : refuse("bad-option", where, `'${names.join("', '").replace(/, (?='\w+$)/, " or ")}'`, value);

type Given<Options, Name extends keyof Options> = Options & { [Key in Name]-?: NonNullable<Options[Key]> };

/** The options once more, or an error that names the first missing one. */
export function required<Options extends object, Name extends keyof Options & string>(
  options: Options,
  names: readonly Name[],
  where: string,
): Given<Options, Name> {
  const missing = names.find((name) => options[name] === undefined);
  if (missing !== undefined) fail("bad-option", `${where}: ${missing} is missing; give { ${names.join(", ")} }.`);
  return options as Given<Options, Name>;
}

/** Reads `given` by `table`; null and undefined count as absent. */
export function readOptions<Table extends OptionTable>(given: unknown, table: Table, where: string): OptionsOf<Table> {
  const options: Record<string, unknown> = {};
  if (given === undefined || given === null) return options as OptionsOf<Table>;
  const isTensor = "data" in Object(given); // PyTorch's layer(query, key, value)
  if (isTensor || kindOf(given) !== "Object") {
    const accepted = `an object like { ${Object.keys(table)[0]}: … }`;
    fail("bad-option", `${where}: options must be ${accepted}; received ${isTensor ? "a tensor" : show(given)}.`);
  }
  for (const [name, value] of Object.entries(given as object)) {
    const read = Object.hasOwn(table, name) ? table[name] : undefined;
    if (read === undefined) unknownName("unknown-option", `${where} has no option`, name, Object.keys(table));
    if (value !== undefined && value !== null) options[name] = read(value, `${where}: ${name}`);
  }
  return options as OptionsOf<Table>;
}

/** Throws: there is no `name`, but perhaps the nearest of `names` was meant. */
export function unknownName(
  code: "unknown-option" | "state-unknown",
  sentence: string,
  name: string,
  names: readonly string[],
): never {
  const near = nearest(name, names);
  fail(code, `${sentence} '${name}'. ${near ? `Did you mean '${near}'?` : `There are: ${names.join(", ")}.`}`);
}

/** The longest name whose words are in `name` (isCausal → causal, keyPaddingMask → keyMask), else the one fewest edits away, if few. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
  const wanted = plain(name);
  let best: string | undefined;
  let bestCost = Math.max(1, Math.floor(wanted.length * 0.4)) + 0.5;
  for (const candidate of names) {
    const known = plain(candidate);
    const words = candidate.split(/(?=[A-Z])/).map(plain);
    const contained = known.length > 3 && words.every((word) => wanted.includes(word));
    const cost = contained ? -known.length : editDistance(wanted, known);
    if (cost < bestCost) {
      best = candidate;
      bestCost = cost;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const above = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
  }
  return row[b.length]!;
}
