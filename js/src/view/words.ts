/** What the elements say, in the languages of the READMEs. */
import type { Attention, HeadChoice } from "./data.js";

export interface Words {
  failed: string;
  loading: string;
  empty: string;
  layer: string;
  head: string;
  meanOfHeads: string;
  query: string;
  key: string;
  masked: string;
  future: string;
  notANumber: string;
  /** Weight × ‖value‖. */
  weighted: string;
  mean: string;
  sum: string;
  /** What the bars beside the axes are. */
  bars: (how: string) => string;
  map: string;
  queries: (count: number) => string;
  keys: (count: number) => string;
  /** A pair in a sentence. */
  looks: (query: string, key: string, amount: string) => string;
  rank: (rank: number, of: number) => string;
  locked: string;
  unlocked: string;
  help: string;
  hint: string;
  /** The same for fingers. */
  touchHint: string;
  zoomIn: string;
  zoomOut: string;
  zoomFit: string;
  scale: string;
  linear: string;
  logarithmic: string;
  numbers: string;
  table: string;
  tablePart: (rows: string, columns: string) => string;
  earlierRows: string;
  laterRows: string;
  earlierColumns: string;
  laterColumns: string;
  save: string;
  copyHtml: string;
  copied: string;
  /** The four pictures of a calculation, and what leads from each to the next. */
  steps: Record<"raw" | "scaled" | "masked" | "weights", { title: string; how: string }>;
  visible: string;
  range: (from: string, to: string) => string;
  overview: string;
  overviewHelp: string;
  tiles: string;
  tilesHelp: string;
  /** The chosen queries, where none is. */
  chooseTokens: string;
  text: string;
  textHelp: string;
  lookTo: (token: string, amounts: string) => string;
  lookFrom: (token: string, amounts: string) => string;
  and: string;
}

const english: Words = {
  failed: "This attention cannot be shown",
  loading: "Loading …",
  empty: "No attention yet",
  layer: "Layer",
  head: "Head",
  meanOfHeads: "mean",
  query: "query",
  key: "key",
  masked: "masked",
  future: "later in the text",
  notANumber: "not a number",
  weighted: "weight × ‖value‖",
  mean: "mean",
  sum: "sum",
  bars: (how) => `bars: ${how}`,
  map: "Attention map",
  queries: (count) => `${count} ${count === 1 ? "query" : "queries"}`,
  keys: (count) => `${count} ${count === 1 ? "key" : "keys"}`,
  looks: (query, key, amount) => `${query} looks at ${key}: ${amount}`,
  rank: (rank, of) => `rank ${rank} of ${of}`,
  locked: "Locked. Escape or a click on the cell releases it.",
  unlocked: "Released",
  help: "Arrow keys move from cell to cell, Enter locks one, plus and minus zoom, 0 shows everything, Escape releases.",
  hint: "Click, then scroll to zoom; drag to move",
  touchHint: "Spread two fingers to zoom; drag to move",
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  zoomFit: "Show everything",
  scale: "Scale",
  linear: "linear",
  logarithmic: "log",
  numbers: "Numbers",
  table: "Table",
  tablePart: (rows, columns) => `Queries ${rows}, keys ${columns}`,
  earlierRows: "Earlier queries",
  laterRows: "Later queries",
  earlierColumns: "Earlier keys",
  laterColumns: "Later keys",
  save: "Save as",
  copyHtml: "Copy as HTML",
  copied: "Copied",
  steps: {
    raw: { title: "Scores", how: "every query meets every key" },
    scaled: { title: "Scaled", how: "so that wide heads are not louder" },
    masked: { title: "Masked", how: "−∞ where a query may not look" },
    weights: { title: "Weights", how: "each row becomes shares of 1" },
  },
  visible: "visible",
  range: (from, to) => `${from} to ${to}`,
  overview: "Layers and heads",
  overviewHelp: "Arrow keys move from head to head, Enter shows one alone, Shift and Enter adds one or takes it away.",
  tiles: "Heads",
  tilesHelp: "A click turns a head on or off, a double click shows it alone.",
  chooseTokens: "Point at a token, or choose several",
  text: "Attention in the text",
  textHelp: "Arrow keys move from token to token, Enter chooses one, Shift and Enter several, Escape releases.",
  lookTo: (token, amounts) => `${token} looks at ${amounts}`,
  lookFrom: (token, amounts) => `${token} is looked at by ${amounts}`,
  and: ", ",
};

const chinese: Words = {
  failed: "无法显示这份注意力数据",
  loading: "正在加载……",
  empty: "还没有注意力数据",
  layer: "层",
  head: "头",
  meanOfHeads: "平均",
  query: "查询",
  key: "键",
  masked: "已遮蔽",
  future: "在文本中更靠后",
  notANumber: "不是数字",
  weighted: "权重 × ‖值‖",
  mean: "平均",
  sum: "总和",
  bars: (how) => `条形：${how}`,
  map: "注意力图",
  queries: (count) => `${count} 个查询`,
  keys: (count) => `${count} 个键`,
  looks: (query, key, amount) => `${query} 看向 ${key}：${amount}`,
  rank: (rank, of) => `第 ${rank} 名，共 ${of} 个`,
  locked: "已锁定。按 Esc 或再次点击该格可解除。",
  unlocked: "已解除锁定",
  help: "方向键逐格移动，回车锁定，加号和减号缩放，0 显示全部，Esc 解除。",
  hint: "点击后滚动可缩放，拖动可平移",
  touchHint: "双指张开可放大，拖动可平移",
  zoomIn: "放大",
  zoomOut: "缩小",
  zoomFit: "显示全部",
  scale: "刻度",
  linear: "线性",
  logarithmic: "对数",
  numbers: "数值",
  table: "表格",
  tablePart: (rows, columns) => `查询 ${rows}，键 ${columns}`,
  earlierRows: "前面的查询",
  laterRows: "后面的查询",
  earlierColumns: "前面的键",
  laterColumns: "后面的键",
  save: "另存为",
  copyHtml: "复制为 HTML",
  copied: "已复制",
  steps: {
    raw: { title: "分数", how: "每个查询与每个键相乘" },
    scaled: { title: "缩放", how: "维度再大，分数也不会过大" },
    masked: { title: "遮蔽", how: "不可看的位置为 −∞" },
    weights: { title: "权重", how: "每行变成总和为 1 的份额" },
  },
  visible: "可见",
  range: (from, to) => `${from} 到 ${to}`,
  overview: "各层各头",
  overviewHelp: "方向键逐头移动，回车只看一个头，Shift 加回车增减一个头。",
  tiles: "头",
  tilesHelp: "单击开关一个头，双击只看这一个头。",
  chooseTokens: "指向一个词元，或选中多个",
  text: "文本中的注意力",
  textHelp: "方向键逐词元移动，回车选中，Shift 加回车选多个，Esc 解除。",
  lookTo: (token, amounts) => `${token} 看向 ${amounts}`,
  lookFrom: (token, amounts) => `看向 ${token} 的有 ${amounts}`,
  and: "、",
};

/** Chinese for zh in whatever form, else English. */
export const wordsFor = (language: string): Words => (/^zh\b/i.test(language) ? chinese : english);

/** Opening and closing quotation marks around a token. */
export const quote = (label: string): string => `“${label}”`;

/** A head by its number in the model; several by theirs. */
export function headName(attention: Attention, head: HeadChoice, words: Words): string {
  if (head === "mean") return words.meanOfHeads;
  const numbers = attention.headList(head).map((each) => attention.headNumbers[each]);
  return numbers.length === 1 ? String(numbers[0]) : `${numbers.join(", ")} (${words.meanOfHeads})`;
}
