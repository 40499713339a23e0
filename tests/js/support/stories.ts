/** The small language model beside the repository, if it is there. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ModelSource } from "lookback/model";

const folder = new URL("../../../../shared/models/stories260K/", import.meta.url);

export const storiesPresent = existsSync(new URL("golden.json", folder));
export const STORIES_MISSING = "../shared/models/stories260K is not beside this checkout";

export interface GoldenCase {
  prompt: string;
  promptIds: number[];
  /** Prompt and what follows. */
  ids: number[];
  text: string;
}

export interface Golden {
  cases: GoldenCase[];
  /** att[query][layer][head][key]. */
  attention: { prompt: string; ids: number[]; att: number[][][][]; lastLogits: number[] };
}

export const storiesPath = (name: string): string => fileURLToPath(new URL(name, folder));
export const storiesSource = (): ModelSource & object => ({
  weights: storiesPath("stories260K.bin"),
  tokenizer: storiesPath("tok512.bin"),
});
export const readStories = (name: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(readFileSync(new URL(name, folder)));
export const golden = (): Golden => JSON.parse(readFileSync(new URL("golden.json", folder), "utf8"));
