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

export function formatPercent(value: number): string {
  if (value === 0) return "0%";
  if (value === 1) return "100%";
  const percent = value * 100;
  if (percent < 0.01) return "< 0.01%";
  if (percent < 0.1) return `${percent.toFixed(2)}%`;
  if (percent > 99.9) return "> 99.9%";
  return `${percent.toFixed(percent < 10 || percent > 99 ? 1 : 0)}%`;
}

const COUNTS = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 1234567 as people read it; with `digits`, rounded to so many that count. */
export const formatCount = (value: number, digits = 21): string => COUNTS.format(Number(value.toPrecision(digits)));
