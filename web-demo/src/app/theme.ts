import type { Theme } from "./state";

const KEY = "lookback-theme";
const dark = () => window.matchMedia("(prefers-color-scheme: dark)");

/** Storage may be forbidden (private windows, sandboxed frames): the theme is then simply not remembered. */
export function storedTheme(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export function storeTheme(theme: Theme): void {
  try {
    if (theme === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Not remembered, but applied.
  }
}

export function effectiveTheme(theme: Theme): "light" | "dark" {
  if (theme !== "auto") return theme;
  return dark().matches ? "dark" : "light";
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset.theme = effectiveTheme(theme);
}

export function onSystemThemeChange(listener: () => void): void {
  dark().addEventListener("change", listener);
}
