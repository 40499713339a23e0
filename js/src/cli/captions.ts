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
  writesTitle(model: string, parameters: number): string;
  readonly prompt: string;
  readonly lastWordsTitle: string;
  lastWordsIntro(heads: number): string;
  head(layer: number, head: number): string;
  looksBefore(percent: number): string;
  looksFar(tokens: string): string;
  readonly legend: string;
  readonly next: string;
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
  writesTitle: (model, parameters) => `${model}, ${parameters.toLocaleString("en-US")} parameters, writes`,
  prompt: "Emma was",
  lastWordsTitle: "Where the last words looked",
  lastWordsIntro: (heads) =>
    `Two of the model's ${heads} heads. A row is a token that looks; a dot is a weight of exactly 0: the future, which the causal mask ` +
    "hides. What is missing to 100 went to earlier words.",
  head: (layer, head) => `layer ${layer}, head ${head}`,
  looksBefore: (percent) => `${percent} % on the token before`,
  looksFar: (tokens) => `${tokens} tokens back`,
  legend: "Weights in percent:",
  next: 'Try your own: npm start -- "She said" --seed 2, or npm start -- "明月" for a poem',
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
  writesTitle: (model, parameters) => `${model}（${parameters.toLocaleString("en-US")} 个参数）写道`,
  prompt: "明月",
  lastWordsTitle: "最后几个词元看向何处",
  lastWordsIntro: (heads) =>
    `模型 ${heads} 个头中的两个。行是正在看的词元；点表示权重恰好为 0，即被因果掩码遮住的未来。不足 100 的部分给了更早的词元。`,
  head: (layer, head) => `第 ${layer} 层，头 ${head}`,
  looksBefore: (percent) => `${percent} % 给前一个词元`,
  looksFar: (tokens) => `平均回看 ${tokens} 个词元`,
  legend: "权重（百分比）：",
  next: '试试你自己的：npm start -- "春风" --seed 2，或 npm start -- "She said" 写英文',
};

export const captions: Readonly<Record<Language, Captions>> = { en: english, zh: chinese };

/** The language of the user's locale, as far as it says. */
export function localeLanguage(env: NodeJS.ProcessEnv = process.env): Language {
  return (env.LC_ALL || env.LC_MESSAGES || env.LANG || "").toLowerCase().startsWith("zh") ? "zh" : "en";
}
