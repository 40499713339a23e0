/** Numbers as people read them. */

/** @param {number} milliseconds */
export function time(milliseconds) {
  return Number(milliseconds.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 4, useGrouping: false });
}

/** @param {number} value */
export const percent = (value) => `${Math.round(100 * value)} %`;

/** @param {number} value */
export const multiple = (value) => `${value.toFixed(value < 10 ? 2 : 0)} ×`;

/** @param {number} bytes */
export const size = (bytes) => (bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e3).toFixed(1)} kB`);

/** @param {import("../core/types.ts").Verdict} verdict */
export function verdictValue({ value, unit }) {
  if (value === undefined) return "not measured";
  if (unit === "%") return percent(value);
  if (unit === "tokens/s") return `${Math.round(value)} ${unit}`;
  return unit === "B" ? size(value) : multiple(value);
}
