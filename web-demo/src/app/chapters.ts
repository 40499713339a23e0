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
  {
    id: "write",
    title: { en: "It writes, and shows where it looks", zh: "看它写，看它往哪里看" },
    description: {
      en: "A language model writes in the page, token by token, and shows where it looks and what else could have come.",
      zh: "语言模型在网页里逐个词元写作，并显示它往哪里看、本来还可能写什么。",
    },
    places: [{ label: { en: "Write", zh: "写作" } }],
    load: () => import("../chapters/write/chapter"),
  },
  {
    id: "train",
    title: { en: "It learns while you watch", zh: "看着它学会" },
    description: {
      en: "A tiny language model learns in the page, with the causal mask and without it, side by side.",
      zh: "一个小小的语言模型在网页里学习，带因果掩码与不带因果掩码，并排对照。",
    },
    places: [{ label: { en: "Train", zh: "训练" } }],
    load: () => import("../chapters/train/chapter"),
  },
];
