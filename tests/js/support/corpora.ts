/** Small texts for trainers. */
import type { NewTrainerConfig } from "lookback";
import { randomNumbers } from "./model-folders.ts";

const SUBJECTS = ["the cat", "a dog", "my bird", "the old man", "her horse"];
const VERBS = ["sees", "likes", "follows", "hears"];
const PLACES = ["in the garden", "by the river", "at night", "under a tree"];

/** Sentences of a small grammar, one per line: something that a tiny model learns within some steps. */
export function sentences(lines: number, seed = 1): string {
  const next = randomNumbers(seed);
  const pick = (list: readonly string[]) => list[Math.floor(((next() + 1) / 2) * list.length)]!;
  for (let i = 0; i < 8; i++) next();
  const line = () => `${pick(SUBJECTS)} ${pick(VERBS)} ${pick(SUBJECTS)} ${pick(PLACES)}.\n`;
  return Array.from({ length: lines }, line).join("");
}

/** Letters without any order: what follows can only be known by looking at it. */
export function noise(length: number, seed = 1): string {
  const next = randomNumbers(seed);
  for (let i = 0; i < 8; i++) next();
  return Array.from({ length }, () => "abcdefgh"[Math.floor(4 * (next() + 1))]!).join("");
}

/** A run of a few thousand weights; `more` says what a test is about. */
export function tinyRun(more: Partial<NewTrainerConfig> = {}): NewTrainerConfig {
  return {
    text: sentences(300),
    batch: 4,
    steps: 20,
    learningRate: 3e-3,
    evaluateEvery: 0,
    ...more,
    model: { layers: 2, heads: 2, embedDim: 32, contextLength: 32, ...more.model },
  };
}
