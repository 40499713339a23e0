/** The words of `npm start`, in English and Chinese. */
export type Language = "en" | "zh";

export interface Captions {
  readonly tagline: string;
  engine(variant: string, fused: boolean): string;
  readonly exampleTitle: string;
  readonly exampleIntro: string;
  readonly exampleTokens: readonly [string, string, string, string];
  readonly scores: string;
  readonly mask: string;
  readonly masked: string;
  readonly softmax: string;
  exampleResult(largestFutureWeight: number, rowSums: string): string;
  sentenceTitle(tokens: number, heads: number): string;
  readonly legend: string;
  head(head: number): string;
  readonly causal: string;
  readonly unmasked: string;
  readonly untrained: string;
  readonly next: string;
  readonly sentence: string;
}

const english: Captions = {
  tagline: "masked attention, computed in C++ and WebAssembly SIMD",
  engine: (variant, fused) =>
    `variant ${variant}: multiply-add is ${fused ? "fused, rounds once" : "a multiply and an add, rounds twice"}`,
  exampleTitle: "What the causal mask does",
  exampleIntro:
    "Four tokens, one head of width 4. A row is a token that looks, a column a token that is looked at. M adds 0 where " +
    "looking is allowed and −∞ in the future; softmax makes of −∞ a weight of exactly 0.",
  exampleTokens: ["I", "see", "my", "cat"],
  scores: "scores = Q·Kᵀ/√d",
  mask: "M",
  masked: "scores + M",
  softmax: "weights = softmax",
  exampleResult: (largest, sums) => `Largest weight above the diagonal: ${largest}. Row sums: ${sums}.`,
  sentenceTitle: (tokens, heads) =>
    `${tokens} ${tokens === 1 ? "token" : "tokens"}, ${heads} ${heads === 1 ? "head" : "heads"}`,
  legend: "Weights in percent:",
  head: (head) => `head ${head}`,
  causal: "causal",
  unmasked: "no mask",
  untrained:
    "The embeddings and weights are pseudo-random, not trained: the maps show who may look at whom, not what a model has " +
    "learnt. A dot is a weight of exactly 0.",
  next: 'Try your own: npm start "a sentence"',
  sentence: "The quick brown fox jumps over the lazy dog.",
};

const chinese: Captions = {
  tagline: "带掩码的注意力，由 C++ 与 WebAssembly SIMD 计算",
  engine: (variant, fused) => `变体 ${variant}：乘加${fused ? "融合，只舍入一次" : "分为乘与加，舍入两次"}`,
  exampleTitle: "因果掩码做了什么",
  exampleIntro:
    "四个词元，一个宽度为 4 的头。行是正在看的词元，列是被看的词元。M 在可以看的地方加 0，在未来的地方加 −∞；" +
    "softmax 把 −∞ 变成恰好为 0 的权重。",
  exampleTokens: ["我", "爱", "小", "猫"],
  scores: "分数 = Q·Kᵀ/√d",
  mask: "M",
  masked: "分数 + M",
  softmax: "权重 = softmax",
  exampleResult: (largest, sums) => `对角线以上最大的权重：${largest}。每行之和：${sums}。`,
  sentenceTitle: (tokens, heads) => `${tokens} 个词元，${heads} 个头`,
  legend: "权重（百分比）：",
  head: (head) => `头 ${head}`,
  causal: "因果",
  unmasked: "无掩码",
  untrained: "词嵌入与权重是伪随机的，未经训练：图中是谁可以看谁，而不是模型学到了什么。点表示权重恰好为 0。",
  next: '试试你自己的句子：npm start "一句话"',
  sentence: "今天天气很好，我们一起去公园散步。",
};

export const captions: Readonly<Record<Language, Captions>> = { en: english, zh: chinese };

/** The language of the user's locale, as far as it says. */
export function localeLanguage(env: NodeJS.ProcessEnv = process.env): Language {
  return (env.LC_ALL || env.LC_MESSAGES || env.LANG || "").toLowerCase().startsWith("zh") ? "zh" : "en";
}
