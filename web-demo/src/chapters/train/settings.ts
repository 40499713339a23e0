/** What the reader chose, and how it stands in the address: &size=small&heads=4&steps=300&seed=1&leak=no */
import type { Lang } from "../../app/state";
import type { RunConfig } from "./protocol";
import loomings from "./texts/loomings.txt?raw";
import tang from "./texts/tang.txt?raw";

/** Moby-Dick, chapters 1 and 2; poems of the Tang dynasty in lines of five. All of them are in the public domain. */
export const TEXTS: Readonly<Record<Lang, string>> = { en: loomings, zh: tang };

/** Widths that 1, 2, 4 and 8 heads divide. */
export const SIZES = {
  tiny: { layers: 2, embedDim: 48, contextLength: 24, batch: 48, learningRate: 6e-3 },
  small: { layers: 2, embedDim: 64, contextLength: 24, batch: 48, learningRate: 6e-3 },
  medium: { layers: 3, embedDim: 96, contextLength: 48, batch: 32, learningRate: 5e-3 },
} as const;
export type Size = keyof typeof SIZES;
export const HEADS = [1, 2, 4, 8] as const;
export const LIMITS = { steps: 5000, seed: 2 ** 32 - 1 } as const;
const SNAPSHOTS = 20;
const SENTENCE = 24;
const VALIDATION = 0.1;

export interface Settings {
  readonly size: Size;
  readonly heads: number;
  readonly steps: number;
  readonly seed: number;
  /** Whether a second model learns without the mask. */
  readonly leak: boolean;
}

/** With seed 1 a step of the masked model overshoots in the English text: a spike in the curve that teaches nothing. */
export const START: Settings = { size: "small", heads: 4, steps: 300, seed: 2, leak: true };

const isSize = (value: string | null): value is Size => value !== null && Object.hasOwn(SIZES, value);

export function readSettings(parameters: URLSearchParams): Settings {
  const whole = (name: string, fallback: number, fits: (value: number) => boolean) => {
    const value = Number(parameters.get(name) ?? Number.NaN);
    return Number.isInteger(value) && fits(value) ? value : fallback;
  };
  const size = parameters.get("size");
  return {
    size: isSize(size) ? size : START.size,
    heads: whole("heads", START.heads, (heads) => HEADS.some((each) => each === heads)),
    steps: whole("steps", START.steps, (steps) => steps >= 1 && steps <= LIMITS.steps),
    seed: whole("seed", START.seed, (seed) => seed >= 0 && seed <= LIMITS.seed),
    leak: parameters.get("leak") !== "no",
  };
}

export function writeSettings(settings: Settings): URLSearchParams {
  const out = new URLSearchParams();
  if (settings.size !== START.size) out.set("size", settings.size);
  if (settings.heads !== START.heads) out.set("heads", String(settings.heads));
  if (settings.steps !== START.steps) out.set("steps", String(settings.steps));
  if (settings.seed !== START.seed) out.set("seed", String(settings.seed));
  if (!settings.leak) out.set("leak", "no");
  return out;
}

/** The first words of a text, short enough to leave the model room to write. */
const beginningOf = (text: string): string => /^.{3,11}?[\s,.，。]/su.exec(text)?.[0] ?? [...text].slice(0, 8).join("");

/** A run with the mask, or the same without it. */
export function configOf(settings: Settings, text: string, mask: boolean): RunConfig {
  const { size, heads, steps, seed } = settings;
  const start = text.trimStart();
  return {
    text,
    sentence: [...start].slice(0, SENTENCE).join(""),
    prompt: beginningOf(start),
    ...SIZES[size],
    heads,
    steps,
    seed,
    mask,
    validation: VALIDATION,
    every: Math.max(1, Math.round(steps / SNAPSHOTS)),
  };
}

/** The command that makes the same steps with the mask. */
export function commandOf({ layers, heads, embedDim, contextLength, batch, ...config }: RunConfig): string {
  const { learningRate, steps, seed, validation, every } = config;
  const model = `--layers ${layers} --heads ${heads} --embed ${embedDim} --context ${contextLength}`;
  const learning = `--batch ${batch} --lr ${learningRate} --steps ${steps} --seed ${seed} --validation ${validation}`;
  return `npx lookback train corpus.txt --out model ${model} ${learning} --evaluate-every ${every}`;
}
