/** The texts that the bundled models are trained on, made below build/corpus, the same bytes each time. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildFolder } from "../../../bindings/toolchain/paths.mjs";
import * as english from "./english-prose.mjs";
import { textHash } from "./packages.mjs";
import * as tang from "./tang-verse.mjs";

/** @typedef {{ folder: string, train: string, validation: string, test: string, hash: string }} Corpus */

/** @type {Record<string, { parts(): Promise<{ train: string[], validation: string[], test: string[] }> }>} */
const makers = { "english-prose": english, "tang-verse": tang };

export const names = Object.keys(makers);

/**
 * Makes a model's corpus: train.txt, validation.txt and test.txt.
 * @param {string} name
 * @returns {Promise<Corpus>}
 */
export async function corpus(name) {
  const maker = makers[name];
  if (!maker) throw new Error(`There is no corpus '${name}'; there are ${names.join(", ")}.`);
  const { train, validation, test } = await maker.parts();
  /** @param {string[]} lines */
  const text = (lines) => lines.map((line) => `${line}\n`).join("");
  const folder = join(buildFolder, "corpus", name);
  const made = { train: text(train), validation: text(validation), test: text(test) };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "train.txt"), made.train);
  writeFileSync(join(folder, "validation.txt"), made.validation);
  writeFileSync(join(folder, "test.txt"), made.test);
  return { folder, ...made, hash: textHash(made.train + made.validation + made.test) };
}
