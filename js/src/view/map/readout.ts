/** The pair that is pointed at, in words and numbers: what is read, and what is heard. */
import type { Attention, HeadChoice } from "../data.js";
import { bdi, h } from "../dom.js";
import type { CellDetail } from "../events.js";
import { formatNumber, formatPercent, formatPrecise } from "../format.js";
import type { Words } from "../words.js";
import { quote } from "../words.js";
import type { Cell } from "./viewport.js";

export function detailOf(
  attention: Attention,
  matrix: Float32Array,
  layer: number,
  head: HeadChoice,
  { query, key }: Cell,
): CellDetail {
  const score = attention.score(layer, head, query, key);
  return {
    layer,
    head,
    query,
    key,
    queryToken: attention.queryTokens[query]!,
    keyToken: attention.keyTokens[key]!,
    weight: matrix[query * attention.keyLength + key]!,
    ...(score && { product: score.product, score: score.scaled }),
  };
}

/** The amount, and why it is nothing where it is. */
function amountOf(attention: Attention, detail: CellDetail, weighted: boolean, words: Words): string {
  const { weight, query, key } = detail;
  const why = attention.isFuture(query, key) ? `${words.masked}, ${words.future}` : words.masked;
  if (Number.isNaN(weight)) return words.notANumber;
  if (attention.kind === "scores") return weight === Number.NEGATIVE_INFINITY ? `−∞ (${why})` : formatNumber(weight, 3);
  if (weight === 0) return `0 (${why})`;
  // Only shares of a whole are percentages.
  return weighted || weight > 1 ? formatPrecise(weight) : `${formatPrecise(weight)} (${formatPercent(weight)})`;
}

/** How many keys the query looks at more, from 1 on. */
function rankOf(attention: Attention, matrix: Float32Array, { query, weight }: CellDetail): number {
  let rank = 1;
  for (let key = 0; key < attention.keyLength; key++) if (matrix[query * attention.keyLength + key]! > weight) rank++;
  return rank;
}

function scoreText(attention: Attention, detail: CellDetail): string | null {
  if (detail.product === undefined) return null;
  const scale = attention.vectors(detail.layer, detail.head)?.scale ?? 1;
  return `q · k = ${formatNumber(detail.product, 3)}, × ${formatPrecise(scale)} = ${formatNumber(detail.score ?? 0, 3)}`;
}

export function spoken(
  attention: Attention,
  matrix: Float32Array,
  detail: CellDetail,
  weighted: boolean,
  words: Words,
): string {
  const { queryToken, keyToken } = detail;
  const amount = amountOf(attention, detail, weighted, words);
  const rank = words.rank(rankOf(attention, matrix, detail), attention.keyLength);
  return [words.looks(quote(queryToken.label), quote(keyToken.label), amount), rank, scoreText(attention, detail)]
    .filter((part) => part !== null)
    .join("; ");
}

export function showReadout(
  host: HTMLElement,
  attention: Attention,
  matrix: Float32Array,
  detail: CellDetail | null,
  weighted: boolean,
  words: Words,
): void {
  if (!detail) {
    host.replaceChildren(
      h("span", { class: "quiet" }, `${words.queries(attention.queryLength)} × ${words.keys(attention.keyLength)}`),
      h("span", { class: "quiet" }, matchMedia("(pointer: coarse)").matches ? words.touchHint : words.hint),
    );
    return;
  }
  const { queryToken, keyToken, query, key } = detail;
  const side = (label: string, position: number) =>
    h("span", { class: "token" }, bdi(label), label === String(position) ? null : h("sub", {}, String(position)));
  const score = scoreText(attention, detail);
  const rank = attention.kind === "weights" ? words.rank(rankOf(attention, matrix, detail), attention.keyLength) : null;
  const parts = [
    h(
      "span",
      { class: "pair" },
      side(queryToken.label, attention.queryTokens[query]?.position ?? query),
      h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      side(keyToken.label, attention.keyTokens[key]?.position ?? key),
    ),
    h("strong", { class: "amount" }, amountOf(attention, detail, weighted, words)),
    score === null ? null : h("span", { class: "score" }, score),
    rank === null ? null : h("span", { class: "quiet" }, rank),
  ];
  host.replaceChildren(...parts.filter((part) => part !== null));
}
