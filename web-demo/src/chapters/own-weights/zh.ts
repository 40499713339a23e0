/** 自己的权重。 */
import type { OwnWeightsMessages } from "./en";

export const zh: OwnWeightsMessages = {
  eyebrow: "自己的权重",
  title: "看看别处算出的注意力",
  lead: "自己的程序或别的库算出了注意力权重？放到这里就能看。什么都不会上传：文件不会离开这台机器。",
  drop: "把文件拖到这里，或粘贴它的文本",
  placeholder: '{ "weights": [[[1, 0], [0.4, 0.6]]], "tokens": ["我", "看"] }',
  open: "打开文件",
  kinds:
    "JSON（{ weights, tokens }、transformers.js 的 attentions、BertViz 的 attn 与 left_text、right_text）、表格（CSV、TSV）、NumPy 的 .npy。",
  tokens: "词元（如果数据里没有）",
  tokensHint: "用空格隔开，或写成 JSON 列表；查询与键不同时，先写查询的，再写键的。",
  examples: "示例",
  exampleNames: { heads: "几个头（JSON）", bertviz: "BertViz 格式", table: "表格" },
  sample: "那只动物没过马路因为累了",
  problem: "无法读作注意力",
  problemText(problem) {
    switch (problem.code) {
      case "empty":
        return "文件是空的。";
      case "json":
        return "开头像 JSON，但并不是。是不是缺了结尾，或多了逗号？";
      case "no-weights":
        return `这是一个对象，但没有“weights”（也没有“attentions”“attention”“attn”）。它的键：${problem.keys.join("、") || "无"}。`;
      case "archive":
        return "这是压缩包（.npz 或 .zip）。请用 np.save 保存单个数组，或先解压。";
      case "npy":
        return "开头像 NumPy 文件，但已损坏或不完整。";
      case "npy-dims":
        return `数组的维度是 [${problem.dims.join(", ")}]；至少需要 [查询, 键]。`;
      case "npy-type":
        return `数组的类型是 ${problem.dtype}；可以读取浮点数、不超过 32 位的整数以及 float64。请用 array.astype("float32")。`;
      case "ragged":
        return `第 ${problem.line} 行有 ${problem.found} 个数，而第一行有 ${problem.expected} 个：每行必须一样长。`;
      case "not-a-number":
        return `第 ${problem.line} 行第 ${problem.column} 列：“${problem.found}”不是数。`;
      case "tokens":
        return `有 ${problem.count} 个词元，而查询有 ${problem.queries} 个、键有 ${problem.keys} 个：请给 ${problem.keys} 个；若查询与键是不同的文本，请给 ${problem.queries + problem.keys} 个。`;
      case "refused":
        return "形状或数值不合适：";
    }
  },
  likeThis: "可以写成这样：",
  result: "读到的内容",
  formats: { json: "JSON", table: "表格", npy: "NumPy 数组" },
  shape: (layers, heads, queries, keys) => `${layers} 层 × ${heads} 头，${queries} 个查询 × ${keys} 个键`,
  scores: "带符号的分数，不是权重",
  sums: (least, most) =>
    least === most ? `这个头各行之和都是 ${least}。` : `这个头各行之和在 ${least} 与 ${most} 之间。`,
  map: "注意力权重",
  text: "原文，按一个词看向何处着色",
};
