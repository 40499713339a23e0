/** 各章共用的文字。 */
import type { Messages } from "./en";

export const zh: Messages = {
  htmlLang: "zh-CN",
  brand: "lookback",
  skip: "跳到本章正文",
  language: "语言",
  theme: {
    auto: "自动",
    light: "浅色",
    dark: "深色",
    label: (now) => `配色：${now}。点击切换。`,
  },
  contents: "各章",
  loading: "正在载入……",
  engine: {
    variant: (variant) => `引擎：${variant}`,
    fused: "融合乘加",
    unfused: "先乘后加",
    threads: (count) => `${count} 个线程`,
    reason: (why) => `不能更多：${why}`,
    label: "本页的数字由它计算",
  },
  failure: {
    title: "这一章无法显示",
    lead: "本章的图文都来自 WebAssembly 算出的数字，所以现在还没有内容可看。出错的原因是：",
    hint: "如果是直接打开的文件，请改用服务器访问（<code>npm run demo</code>）。如果浏览器早于 2023 年左右，请换一个新一些的。",
    retry: "重试",
  },
};
