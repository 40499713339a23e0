/** What the reader chose, and how it stands in the address: &prompt=…&t=0.8&k=40&p=0.95&seed=1&n=200&layer=2&head=0&pace=full */
import type { Look, Sampling } from "./protocol";

export const PACES = { slow: 450, word: 90, full: 0 } as const;
export type Pace = keyof typeof PACES;

export interface Settings {
  readonly model: string | null;
  readonly prompt: string;
  readonly sampling: Sampling;
  readonly maxTokens: number;
  readonly pace: Pace;
  readonly look: Look;
}

export const START: Omit<Settings, "prompt"> = {
  model: null,
  sampling: { temperature: 0.8, topK: 0, topP: 0.95, seed: 1 },
  maxTokens: 160,
  pace: "word",
  look: { layer: null, head: null },
};

/** What the engine and the fields take. */
export const LIMITS = { temperature: 2, topK: 1000, seed: 2 ** 32 - 1, maxTokens: 4096 } as const;

export function readSettings(parameters: URLSearchParams, prompt: string): Settings {
  const number = (name: string, fallback: number, fits: (value: number) => boolean) => {
    const text = parameters.get(name);
    const value = Number(text);
    return text !== null && text.trim() !== "" && fits(value) ? value : fallback;
  };
  const whole = (least: number, most: number) => (value: number) =>
    Number.isInteger(value) && value >= least && value <= most;
  const chosen = (name: string) => {
    const value = number(name, -1, whole(0, 1023));
    return value < 0 ? null : value;
  };
  const pace = parameters.get("pace");
  const { sampling } = START;
  return {
    model: parameters.get("model"),
    prompt: parameters.get("prompt") ?? prompt,
    sampling: {
      temperature: number("t", sampling.temperature, (t) => t >= 0 && t <= LIMITS.temperature),
      topK: number("k", sampling.topK, whole(0, LIMITS.topK)),
      topP: number("p", sampling.topP, (p) => p > 0 && p <= 1),
      seed: number("seed", sampling.seed, whole(0, LIMITS.seed)),
    },
    maxTokens: number("n", START.maxTokens, whole(1, LIMITS.maxTokens)),
    pace: pace === "slow" || pace === "full" ? pace : START.pace,
    look: { layer: chosen("layer"), head: chosen("head") },
  };
}

/** Only what differs from the start. */
export function writeSettings(settings: Settings, prompt: string): URLSearchParams {
  const out = new URLSearchParams();
  const { sampling, look } = settings;
  const set = (name: string, value: string | number | null, start: string | number | null) => {
    if (value !== null && value !== start) out.set(name, String(value));
  };
  set("model", settings.model, START.model);
  set("prompt", settings.prompt, prompt);
  set("t", sampling.temperature, START.sampling.temperature);
  set("k", sampling.topK, START.sampling.topK);
  set("p", sampling.topP, START.sampling.topP);
  set("seed", sampling.seed, START.sampling.seed);
  set("n", settings.maxTokens, START.maxTokens);
  set("layer", look.layer, null);
  set("head", look.head, null);
  set("pace", settings.pace, START.pace);
  return out;
}

const quoted = (text: string) => `"${text.replace(/[\\"$`]/g, "\\$&")}"`;

/** The command that writes the same text. */
export function commandOf(model: string, { prompt, sampling, maxTokens }: Settings): string {
  const { temperature, topK, topP, seed } = sampling;
  const parts = ["npx lookback generate", model, quoted(prompt), `--temperature ${temperature}`];
  if (topK > 0) parts.push(`--top-k ${topK}`);
  if (topP < 1) parts.push(`--top-p ${topP}`);
  parts.push(`--seed ${seed}`, `--max-tokens ${maxTokens}`);
  return parts.join(" ");
}
