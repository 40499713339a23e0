/** Numbers as people write them: a real minus sign, ∞ spelled as such. */

export function formatNumber(value: number, digits = 2): string {
  if (Number.isNaN(value)) return "NaN";
  if (value === Number.POSITIVE_INFINITY) return "∞";
  if (value === Number.NEGATIVE_INFINITY) return "−∞";
  if (value === 0) return "0";
  const text = Math.abs(value).toFixed(digits);
  // A rounded-away number shows no sign: "−0.00" tells nobody anything.
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** Enough digits to tell small weights apart, and no more: 0.312, 0.00042, 3.1e−7. */
export function formatPrecise(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || value === 0) return formatNumber(value);
  if (size >= 1000) return formatNumber(value, 0);
  if (size >= 0.1) return formatNumber(value, 3);
  if (size >= 1e-5) return formatNumber(value, Math.min(7, 2 - Math.floor(Math.log10(size))));
  return value.toExponential(1).replaceAll("-", "−");
}

/** The ends of scales: 1, 0.25, without zeros that say nothing. */
export function formatRound(value: number): string {
  const text = formatPrecise(value);
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}

export function formatPercent(value: number): string {
  if (!Number.isFinite(value)) return formatNumber(value);
  if (value === 0) return "0%";
  const percent = value * 100;
  const size = Math.abs(percent);
  if (size < 0.01) return percent > 0 ? "< 0.01%" : "> −0.01%";
  return `${formatNumber(percent, size < 0.1 ? 2 : size < 10 || (size > 99 && size < 100) ? 1 : 0)}%`;
}
