/** The READMEs' section on performance, in both languages, from reports. */
import { percent, size, time } from "./numbers.mjs";

/** @typedef {import("../core/types.ts").Report} Report */
/** @typedef {import("../core/types.ts").Row} Row */
/** @typedef {"en" | "zh"} Language */

const texts = {
  en: {
    heading: "Performance",
    intro:
      "Milliseconds of a call, 12 heads × 64, float32, one thread; in brackets the share of what one core can do at most, measured in the same run.",
    calculation: "calculation",
    tokens: (/** @type {string} */ count) => `${count} tokens/s`,
    native: " (native)",
    ceiling:
      "The ceiling is the rate of multiply-adds that stay in registers, or, for decoding, a decoder's token and a single row, of reading memory. Causal attention is counted by its visible half. Inputs and outputs are JavaScript arrays, copies included; weights and caches are where each library keeps them.",
    start: (/** @type {string} */ ours, /** @type {string} */ theirs) =>
      `\`createLookback()\` takes ${ours} ms in a fresh process; the first session of onnxruntime-web ${theirs} ms.`,
    size: (/** @type {string} */ wasm, /** @type {string} */ script) =>
      `The wasm is ${wasm}; the JavaScript around it ${script}, minified and gzipped.`,
    memory: (/** @type {number} */ length, /** @type {string} */ bytes) =>
      `A causal call of ${length} tokens needs ${bytes} beyond its inputs and output.`,
    engines: "Shares of the ceiling in other engines (`simd` / `relaxed`):",
    machine: "Measured by `npm run bench` on ",
    cases: {
      "causal-1024": "causal, L = 1024",
      "causal-128": "causal, L = 128",
      "full-512": "no mask, L = 512",
      "mask-1024": "causal and a dense mask, L = 1024",
      "weights-1024": "causal, weights returned, L = 1024",
      linear: "linear, 512 × 768 → 2304",
      "linear-head": "linear, 1 row, 768 → 50257",
      layer: "whole causal layer, width 768, L = 512",
      "decode-4096": "decoding, 4096 cached keys",
      "gpt2-step": "a token of a GPT-2, 124 million weights",
      generate: "text of a model of 260,000 weights, greedy",
      "training-step": "a training step, width 256, 4 layers, 2048 tokens",
    },
  },
  zh: {
    heading: "性能",
    intro: "每次调用的毫秒数：12 个头 × 64，float32，单线程；括号内是占单核上限的比例，上限在同一次运行中测得。",
    calculation: "计算",
    tokens: (/** @type {string} */ count) => `${count} 词元/秒`,
    native: "（原生）",
    ceiling:
      "上限指数据一直留在寄存器里的乘加速率；解码、解码器的一个词元和单行则指读取内存的速率。因果注意力只计可见的一半。输入和输出都是 JavaScript 数组，时间包含拷贝；权重和缓存放在各个库自己的位置。",
    start: (/** @type {string} */ ours, /** @type {string} */ theirs) =>
      `在全新的进程里，\`createLookback()\` 需要 ${ours} 毫秒；onnxruntime-web 的第一个会话需要 ${theirs} 毫秒。`,
    size: (/** @type {string} */ wasm, /** @type {string} */ script) =>
      `wasm 为 ${wasm}；外围的 JavaScript 压缩并 gzip 之后为 ${script}。`,
    memory: (/** @type {number} */ length, /** @type {string} */ bytes) =>
      `${length} 个词元的因果调用，除输入和输出外还需要 ${bytes}。`,
    engines: "其他引擎中占上限的比例（`simd` / `relaxed`）：",
    machine: "由 `npm run bench` 测得：",
    cases: {
      "causal-1024": "因果，L = 1024",
      "causal-128": "因果，L = 128",
      "full-512": "无掩码，L = 512",
      "mask-1024": "因果加稠密掩码，L = 1024",
      "weights-1024": "因果并返回权重，L = 1024",
      linear: "线性层，512 × 768 → 2304",
      "linear-head": "线性层，1 行，768 → 50257",
      layer: "完整的因果层，宽 768，L = 512",
      "decode-4096": "解码，缓存 4096 个键",
      "gpt2-step": "GPT-2 的一个词元，1.24 亿个权重",
      generate: "由 26 万个权重的模型生成文本，贪心",
      "training-step": "一个训练步，宽 256，4 层，2048 个词元",
    },
  },
};

const peers = ["onnxruntime-web", "tfjs-wasm", "jax-js", "onnxruntime-node"];

/**
 * @param {Report} report
 * @param {readonly Report[]} others of other engines, on the same machine
 * @param {Language} language
 */
export function performanceSection(report, others, language) {
  const text = texts[language];
  const names = /** @type {[string, string][]} */ (Object.entries(text.cases));
  const rows = names.flatMap(([id, name]) => {
    const found = rowsOf(report, id);
    if (!found) return [];
    const cell = (/** @type {string} */ contestant) =>
      cellOf(
        found.find((row) => row.contestant === contestant),
        language,
      );
    return [[name, cell("lookback-simd"), cell("lookback-relaxed"), ...peers.map(cell)]];
  });
  const head = [
    text.calculation,
    "Lookback `simd`",
    "Lookback `relaxed`",
    ...peers.map((peer) => (peer === "onnxruntime-node" ? `${peer}${text.native}` : peer)),
  ];
  return [
    `## ${text.heading}`,
    text.intro,
    tableOf(head, rows),
    text.ceiling,
    factsOf(report, language),
    ...(others.length > 0 ? [text.engines, sharesTable([report, ...others], names, text.calculation)] : []),
    `${text.machine}${machineLine(report)}`,
  ]
    .filter(Boolean)
    .join("\n\n");
}

/**
 * Those of the case's last workload: what it is named after.
 * @param {Report} report
 * @param {string} id
 */
function rowsOf(report, id) {
  const found = report.cases.find((one) => one.id === id);
  const workload = found?.workloads.at(-1)?.id;
  return found?.rows.filter((row) => row.workload === workload);
}

/**
 * @param {Row | undefined} row
 * @param {Language} language
 */
function cellOf(row, language) {
  if (!row?.wall) return "–";
  if (row.work?.tokens !== undefined && row.rate !== undefined)
    return texts[language].tokens(Number(row.rate.toPrecision(2)).toLocaleString("en"));
  return `${time(row.wall.median)}${row.share === undefined ? "" : ` (${percent(row.share)})`}`;
}

/**
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
function tableOf(head, rows) {
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map((_, n) => (n === 0 ? "---" : "---:")).join("|")}|`, ...rows.map(line)].join("\n");
}

/**
 * @param {Report} report
 * @param {Language} language
 */
function factsOf({ start, sizes, memory }, language) {
  const text = texts[language];
  const call = (/** @type {string} */ name) => start?.find(({ contestant }) => contestant === name)?.call?.median;
  const [ours, theirs] = [call("lookback"), call("onnxruntime-web")];
  const bytes = (/** @type {string} */ group) =>
    Math.max(...(sizes ?? []).filter((one) => one.group === group).map((one) => one.bytes));
  const extra = memory?.find(({ extraBytes }) => extraBytes !== undefined);
  return [
    ...(ours && theirs ? [text.start(time(ours), time(theirs))] : []),
    ...(sizes ? [text.size(size(bytes("wasm")), size(bytes("typescript") + bytes("glue")))] : []),
    ...(extra?.extraBytes === undefined ? [] : [text.memory(extra.length, size(extra.extraBytes))]),
  ]
    .map((fact) => `- ${fact}`)
    .join("\n");
}

/**
 * @param {readonly Report[]} reports
 * @param {readonly [string, string][]} names
 * @param {string} corner
 */
function sharesTable(reports, names, corner) {
  const shares = (/** @type {Report} */ report, /** @type {string} */ id) =>
    ["lookback-simd", "lookback-relaxed"]
      .map((contestant) => rowsOf(report, id)?.find((row) => row.contestant === contestant)?.share)
      .map((share) => (share === undefined ? "–" : percent(share)))
      .join(" / ");
  return tableOf(
    [corner, ...reports.map(({ machine }) => machine.engine)],
    names
      // A text has no ceiling.
      .filter(([id]) => reports.some((report) => rowsOf(report, id)?.some(({ share }) => share !== undefined)))
      .map(([id, name]) => [name, ...reports.map((report) => shares(report, id))]),
  );
}

/** @param {Report} report */
function machineLine({ machine, date }) {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`);
  return `${machine.cpu}, ${machine.cores} cores, ${machine.system}, ${machine.engine} (V8 ${machine.v8}), ${date.slice(0, 10)}; ${versions.join(", ")}.`;
}
