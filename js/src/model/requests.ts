import { fail, kindOf, refuse, show } from "../errors.js";
import { later, readOptions } from "../options.js";
import type { DecoderSettings } from "./settings.js";
import type { ModelWeightsRequest, Prompt } from "./types.js";

/** Layers (rising) and heads of a request. */
export interface Chosen {
  readonly layers: readonly number[];
  readonly heads: readonly number[];
}

/** Distinct numbers below `count`, or all of them. */
export function readChoice(value: unknown, count: number, where: string): number[] {
  if (value === undefined || value === "all") return Array.from({ length: count }, (_, i) => i);
  const list = Array.isArray(value) || kindOf(value) === "Int32Array" ? Array.from(value as number[]) : undefined;
  const fits = list?.every((n, i) => Number.isInteger(n) && n >= 0 && n < count && list.indexOf(n) === i);
  return list && fits && list.length > 0
    ? list
    : refuse("bad-weights-request", where, `'all' or distinct numbers from 0 to ${count - 1}`, value);
}

export function readChosen(value: ModelWeightsRequest | unknown, settings: DecoderSettings, where: string): Chosen {
  const given = value === true ? {} : value;
  if (kindOf(given) !== "Object") refuse("bad-weights-request", where, "true or { layers, heads }", value);
  const { layers, heads } = readOptions(given, { layers: later<unknown>(), heads: later<unknown>() }, where);
  return {
    layers: readChoice(layers, settings.layers, `${where}: layers`).sort((a, b) => a - b),
    heads: readChoice(heads, settings.heads, `${where}: heads`),
  };
}

/** Ids below `vocabSize`. */
export function readIds(value: unknown, vocabSize: number, where: string, accepted = "a list of token ids"): number[] {
  const list = Array.isArray(value) || kindOf(value) === "Int32Array" ? Array.from(value as unknown[]) : undefined;
  if (!list) return refuse("bad-option", where, accepted, value);
  const wrong = list.findIndex((id) => !(Number.isInteger(id) && (id as number) >= 0 && (id as number) < vocabSize));
  if (wrong >= 0)
    fail(
      "token-out-of-range",
      `${where}: token ids are from 0 to ${vocabSize - 1}; [${wrong}] is ${show(list[wrong])}.`,
    );
  return list as number[];
}

/** Rows of a batch: one prompt, or a list of them. Numbers in a list are one prompt's ids. */
export const isBatch = (value: unknown): value is readonly Prompt[] =>
  Array.isArray(value) && value.length > 0 && typeof value[0] !== "number";

export const isAbortSignal = (value: unknown): value is AbortSignal => kindOf(value) === "AbortSignal";

export const readSignal = (value: unknown, where: string): AbortSignal =>
  isAbortSignal(value) ? value : refuse("bad-option", where, "an AbortSignal", value);
