/** The chapters in reading order; a new one is a module and an entry here. */
import type { ChapterEntry } from "./chapter";

export const CHAPTERS: readonly ChapterEntry[] = [
  {
    id: "article",
    title: { en: "Attention that may only look back", zh: "只许回头看的注意力" },
    description: {
      en: "Masked multi-head attention, step by step, with live numbers from the lookback engine.",
      zh: "一步一步看懂掩码多头注意力，所有数字都由 lookback 引擎当场算出。",
    },
    places: [
      { label: { en: "Masked attention", zh: "掩码注意力" } },
      { at: "heads", label: { en: "Many heads", zh: "多头" } },
    ],
    load: () => import("../article/article"),
  },
];
