/** What every chapter needs, in English. The Chinese file has the same shape: the compiler sees to it. */
export const en = {
  htmlLang: "en",
  brand: "lookback",
  skip: "Skip to the chapter",
  language: "Language",
  theme: {
    auto: "Automatic",
    light: "Light",
    dark: "Dark",
    label: (now: string) => `Colour theme: ${now.toLowerCase()}. Change it.`,
  },
  contents: "Chapters",
  loading: "Loading …",
  engine: {
    variant: (variant: string) => `engine: ${variant}`,
    fused: "fused multiply-add",
    unfused: "multiply, then add",
    threads: (count: number) => (count === 1 ? "1 thread" : `${count} threads`),
    /** The engine's own words, in English. */
    reason: (why: string) => `no more: ${why}`,
    label: "What computes the numbers on this page",
  },
  failure: {
    title: "This chapter cannot be shown",
    lead: "Its text and pictures are made from numbers that WebAssembly computes, so there is nothing to show yet. What went wrong:",
    hint: "If the page was opened as a file, serve it instead (<code>npm run demo</code>). If your browser is older than about 2023, a newer one will do.",
    retry: "Try again",
  },
};

export type Messages = typeof en;
