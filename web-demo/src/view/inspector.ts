/** The calculation behind one cell, spelled out. */
import { h } from "./dom";
import { formatNumber } from "./format";
import type { Tone } from "./matrix";

export type Part =
  | { readonly kind: "product"; readonly a: number; readonly b: number; readonly tones: readonly [Tone, Tone] }
  | { readonly kind: "value"; readonly value: number; readonly tone: Tone; readonly result?: boolean }
  | { readonly kind: "text"; readonly text: string }
  /** Parts that stand close together. */
  | { readonly kind: "call"; readonly parts: readonly Part[] };

export interface Link {
  readonly matrix: string;
  readonly row?: number;
  readonly col?: number;
}

export interface Explanation {
  /** What the number means, in words; may hold the reader's own tokens, so plain text. */
  readonly sentence: string;
  readonly parts: readonly Part[];
  /** What a screen reader hears. */
  readonly spoken: string;
  /** Other rows, columns and cells that take part. */
  readonly links: readonly Link[];
}

export const text = (value: string): Part => ({ kind: "text", text: value });
export const value = (number: number, tone: Tone): Part => ({ kind: "value", value: number, tone });
export const result = (number: number, tone: Tone): Part => ({ kind: "value", value: number, tone, result: true });

/** A result and its sign, which a line must not part. */
export const equals = (total: Part): Part => ({ kind: "call", parts: [text("= "), total] });

/** a₁·b₁ + a₂·b₂ + … = the cell's own number. */
export function dotProduct(
  a: ArrayLike<number>,
  b: ArrayLike<number>,
  tones: readonly [Tone, Tone],
  total: Part,
): readonly Part[] {
  const parts: Part[] = [];
  for (let i = 0; i < a.length; i++) {
    if (i > 0) parts.push(text("+"));
    parts.push({ kind: "product", a: a[i] ?? Number.NaN, b: b[i] ?? Number.NaN, tones });
  }
  return [...parts, equals(total)];
}

/** exp(score − log Σ exp of its row) = weight; a row that sees nothing has no sum, and weight 0 by rule. */
export function softmaxParts(score: number, logSumExp: number, weight: number, note: string): readonly Part[] {
  if (logSumExp === Number.NEGATIVE_INFINITY) return [result(weight, "a")];
  return [
    { kind: "call", parts: [text("exp("), value(score, "m"), text(" − "), value(logSumExp, "s"), text(")")] },
    equals(result(weight, "a")),
    text(`(${note})`),
  ];
}

function number(amount: number, tone: Tone, extra = ""): HTMLElement {
  return h("data", { class: `number tone-${tone} ${extra}`.trim(), value: String(amount) }, formatNumber(amount));
}

function show(part: Part): HTMLElement {
  if (part.kind === "text") return h("span", { class: "sign" }, part.text);
  if (part.kind === "call") return h("span", { class: "call" }, ...part.parts.map(show));
  if (part.kind === "value") return number(part.value, part.tone, part.result ? "result" : "");
  return h(
    "span",
    { class: "product" },
    number(part.a, part.tones[0]),
    h("span", { class: "times" }, "×"),
    number(part.b, part.tones[1]),
  );
}

export function showExplanation(host: HTMLElement, explanation: Explanation): void {
  host.replaceChildren(
    h("p", { class: "sentence" }, explanation.sentence),
    h("p", { class: "formula" }, ...explanation.parts.map(show)),
  );
}
