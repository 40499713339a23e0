/**
 * npm run models -- VERB NAME [options]: what the bundled models are made from and measured with. Prints JSON.
 *
 *   corpus NAME                     makes build/corpus/NAME: train.txt, validation.txt, test.txt
 *   baseline NAME [--order 5]       trains the n-gram model, and measures it on test.txt
 *   evaluate NAME [--folder DIR]    measures the bundled model, or that of a folder, on test.txt
 *   lines NAME [--folder DIR] [--poems 200] [--seed 1]
 *                                   how many of the lines that it writes have the length of their poem's first line
 *   curve NAME --csv FILE           draws the loss.csv of `lookback train` beside the model's card
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createLookback } from "lookback";
import { loadDecoder } from "lookback/model";
import { lossChart } from "../../../dist/experiment/plot.js";
import { corpus } from "./corpus.mjs";
import { heldOutBits } from "./held-out.mjs";
import { countLines } from "./line-lengths.mjs";
import { NGramModel } from "./ngram.mjs";

const OPTIONS = /** @type {const} */ ({
  order: { type: "string", default: "5" },
  folder: { type: "string" },
  poems: { type: "string", default: "200" },
  seed: { type: "string", default: "1" },
  csv: { type: "string", default: "loss.csv" },
});

/** @typedef {ReturnType<typeof readArguments>["options"]} Options */

const verbs = { corpus: describeCorpus, baseline, evaluate, lines, curve };

function readArguments() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
  return { options: values, verb: positionals[0] ?? "", name: positionals[1] ?? "" };
}

/** @param {string} name */
async function describeCorpus(name) {
  const { folder, hash, ...texts } = await corpus(name);
  const characters = Object.entries(texts).map(([part, text]) => [part, [...text].length]);
  return { folder, sha256: hash, characters: Object.fromEntries(characters) };
}

/** @param {string} name @param {Options} options */
async function baseline(name, options) {
  const { train, test } = await corpus(name);
  const order = Number(options.order);
  const characters = [...test].length - 1;
  // The first character is left out, as the language model cannot score what nothing stands before.
  const bits = new NGramModel(train, order).bits(test, 1);
  return { order, characters, bitsPerCharacter: bits / characters };
}

/** @param {string} name @param {Options} options */
async function evaluate(name, options) {
  const { test } = await corpus(name);
  const lb = await createLookback();
  const model = await loadDecoder(lb, sourceOf(name, options));
  const { bits, characters, tokens } = heldOutBits(model, test);
  const { parameters } = model.inspect();
  lb.dispose();
  return { variant: lb.variant, parameters, characters, tokens, bitsPerCharacter: bits / characters };
}

/** @param {string} name @param {Options} options */
async function lines(name, options) {
  const lb = await createLookback();
  const model = await loadDecoder(lb, sourceOf(name, options));
  const counted = await countLines(model, { poems: Number(options.poems), seed: Number(options.seed) });
  lb.dispose();
  return { variant: lb.variant, ...counted };
}

/** @param {string} name @param {Options} options */
function curve(name, { csv }) {
  const rows = readFileSync(csv, "utf8").trim().split("\n").slice(1);
  const points = rows.map((row) => row.split(",").map(Number));
  /** @param {number} column @returns {[number, number][]} */
  const series = (column) => points.flatMap((row) => (row[column] ? [[row[0] ?? 0, row[column] ?? 0]] : []));
  const file = fileURLToPath(new URL(`../${name}/loss.svg`, import.meta.url));
  const training = { name: "training", points: series(1), color: 0 };
  const validation = { name: "validation", points: series(2), color: 1 };
  writeFileSync(file, lossChart(`${name}: loss`, [training, validation]));
  return { file, steps: rows.length };
}

/** @param {string} name @param {Options} options */
const sourceOf = (name, { folder }) => folder ?? new URL(`../${name}/`, import.meta.url);

const { verb, name, options } = readArguments();
const action = verbs[/** @type {keyof typeof verbs} */ (verb)];
if (!action) throw new Error(`Unknown verb '${verb}'; one of: ${Object.keys(verbs).join(", ")}`);
console.log(JSON.stringify(await action(name, options), null, 2));
