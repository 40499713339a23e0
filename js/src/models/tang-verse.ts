import type { NamedFiles } from "../model/sources.js";

/**
 * A small model that writes Chinese regular verse in the manner of the Tang, in simplified characters: a source of loadDecoder, in Node.js, in browsers and in bundles. What it was
 * trained on, how, and what it cannot do: js/models/tang-verse/MODEL_CARD.md.
 */
export const tangVerse: NamedFiles = {
  name: "tang-verse",
  files: {
    // Addresses written out like this are what bundlers look for.
    "config.json": new URL("../../js/models/tang-verse/config.json", import.meta.url),
    "generation_config.json": new URL("../../js/models/tang-verse/generation_config.json", import.meta.url),
    "model.safetensors": new URL("../../js/models/tang-verse/model.safetensors", import.meta.url),
    "tokenizer.json": new URL("../../js/models/tang-verse/tokenizer.json", import.meta.url),
    "tokenizer_config.json": new URL("../../js/models/tang-verse/tokenizer_config.json", import.meta.url),
  },
};
