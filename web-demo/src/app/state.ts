/** What the reader has chosen for the whole page. */
export type Lang = "en" | "zh";
export type Theme = "auto" | "light" | "dark";

/** The same words in both languages. */
export type InBoth = Readonly<Record<Lang, string>>;
