/**
 * Regular verse of the Tang dynasty: quatrains and octaves with lines of five or seven characters, from the Complete Tang Poems of 1705 (in
 * the public domain), as the package chinese-poetry carries them; written in simplified characters by opencc-js.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { unpacked } from "./packages.mjs";

const SOURCE = {
  name: "chinese-poetry",
  version: "2.0.1",
  sha256: "25b549e46919c3a0569db6b68ddc96956b04a484ea4518ad2bbd4f137e307e86",
  files: ["dist/quantangshi"],
};
const SIMPLIFIER = {
  name: "opencc-js",
  version: "1.4.2",
  sha256: "acde2ed46fecc53eb1c329ff093886bf702975be24ace4caa3d01321167d69c8",
  files: ["dist/esm/t2cn.js", "package.json"],
};
/** Poems with a rarer character are left out, so that every character is one that the model has met often. */
const VOCABULARY = 2800;
const COUPLET = /^(\p{Script=Han}{5}，\p{Script=Han}{5}|\p{Script=Han}{7}，\p{Script=Han}{7})[。？！]$/u;

/**
 * Whether a poem is a quatrain or an octave of lines of one length.
 * @param {readonly string[]} couplets
 */
export const isRegular = (couplets) =>
  (couplets.length === 2 || couplets.length === 4) &&
  couplets.every((couplet) => COUPLET.test(couplet) && [...couplet].length === [...(couplets[0] ?? "")].length);

/**
 * The poems made of frequent characters alone: dropping a poem can make others' characters rarer, so until nothing changes.
 * @param {readonly string[]} poems
 * @param {number} vocabulary
 */
export function frequentOnly(poems, vocabulary) {
  for (let kept = poems; ; ) {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const poem of kept) for (const character of poem) counts.set(character, (counts.get(character) ?? 0) + 1);
    if (counts.size <= vocabulary) return kept;
    const most = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, vocabulary);
    const frequent = new Set(most.map(([character]) => character));
    kept = kept.filter((poem) => [...poem].every((character) => frequent.has(character)));
  }
}

async function poems() {
  const folder = join(await unpacked(SOURCE), "dist/quantangshi");
  const { Converter } = await import(pathToFileURL(join(await unpacked(SIMPLIFIER), "dist/esm/t2cn.js")).href);
  /** @type {(text: string) => string} */
  const simplified = Converter({ from: "t", to: "cn" });
  const names = readdirSync(folder).filter((name) => /^poet\.tang\.\d+\.json$/.test(name));
  /** @param {string} name */
  const numberOf = (name) => Number(name.split(".")[2]);
  names.sort((a, b) => numberOf(a) - numberOf(b));
  // Poems come under several poets' names, in slightly different words: each couplet counts once.
  const seen = new Set();
  /** @type {string[]} */
  const all = [];
  for (const name of names) {
    /** @type {{ paragraphs: string[] }[]} */
    const entries = JSON.parse(readFileSync(join(folder, name), "utf8"));
    for (const { paragraphs } of entries) {
      const couplets = paragraphs.map(simplified);
      if (!isRegular(couplets) || couplets.some((couplet) => seen.has(couplet))) continue;
      for (const couplet of couplets) seen.add(couplet);
      all.push(couplets.join("\n"));
    }
  }
  return frequentOnly(all, VOCABULARY);
}

/** Of twenty poems one is for the test and one for validation: poets follow each other in the collection. A poem is followed by an empty line. */
export async function parts() {
  const all = (await poems()).map((poem) => `${poem}\n`);
  return {
    train: all.filter((_, at) => at % 20 < 18),
    validation: all.filter((_, at) => at % 20 === 18),
    test: all.filter((_, at) => at % 20 === 19),
  };
}
