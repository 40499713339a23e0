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
  {
    id: "mask-lab",
    title: { en: "Mask lab", zh: "掩码实验室" },
    description: {
      en: "Compose or draw an attention mask, see what each row sees, and take it along as code.",
      zh: "组合或手绘一个注意力掩码，看每一行能看到什么，再把它作为代码带走。",
    },
    places: [{ label: { en: "Mask lab", zh: "掩码实验室" } }],
    load: () => import("../chapters/mask-lab/mask-lab"),
  },
  {
    id: "long-context",
    title: { en: "Long context", zh: "长上下文" },
    description: {
      en: "Attention over 8,192 words, computed in a worker without ever making the table of weights.",
      zh: "在 Worker 里计算 8192 个词的注意力，从不生成完整的权重表。",
    },
    places: [{ label: { en: "Long context", zh: "长上下文" } }],
    load: () => import("../chapters/long-context/long-context"),
  },
  {
    id: "own-weights",
    title: { en: "Your own weights", zh: "自己的权重" },
    description: {
      en: "Look at attention weights from any program: JSON, tables and NumPy arrays, read on your machine.",
      zh: "查看任何程序算出的注意力权重：JSON、表格和 NumPy 数组，都在本机读取。",
    },
    places: [{ label: { en: "Your own weights", zh: "自己的权重" } }],
    load: () => import("../chapters/own-weights/own-weights"),
  },
];
