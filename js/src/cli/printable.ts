/** Text of a model for a terminal, to which control characters would be commands. */
export const printable = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, "\uFFFD");

/** A token as the label of a row or column. */
export function label(token: string): string {
  const visible = token.replace(/\n/g, "↵").replace(/\t/g, "⇥").trim();
  return visible === "" ? "␣" : printable(visible);
}

/** 1234567 → 1,234,567. */
export const grouped = (value: number): string => value.toLocaleString("en-US");

const UNITS = ["bytes", "kB", "MB", "GB"];

export function bytes(value: number): string {
  const unit = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${unit === 0 ? value : (value / 1000 ** unit).toFixed(1)} ${UNITS[unit]}`;
}
