import type { NamedFiles } from "../model/sources.js";

/**
 * A small model that writes English prose of 1796 to 1865: a source of loadDecoder, in Node.js, in browsers and in bundles. What it was
 * trained on, how, and what it cannot do: js/models/english-prose/MODEL_CARD.md.
 */
export const englishProse: NamedFiles = {
  name: "english-prose",
  files: {
    // Addresses written out like this are what bundlers look for.
    "config.json": new URL("../../js/models/english-prose/config.json", import.meta.url),
    "generation_config.json": new URL("../../js/models/english-prose/generation_config.json", import.meta.url),
    "model.safetensors": new URL("../../js/models/english-prose/model.safetensors", import.meta.url),
    "tokenizer.json": new URL("../../js/models/english-prose/tokenizer.json", import.meta.url),
    "tokenizer_config.json": new URL("../../js/models/english-prose/tokenizer_config.json", import.meta.url),
  },
};
