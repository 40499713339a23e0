/** What `lookback train` is asked for, and what it remembers of it in the folder, so that --resume need not be told again. */
import { createLookback, type Lookback } from "../node.js";
import { engineText, isSameEngine, type RunState } from "../train/checkpoint.js";
import { VERSION } from "../version.js";
import { printable } from "./printable.js";

/** What belongs to a run and is not in its checkpoint. Paths are as they were given. */
export interface Remembered {
  readonly corpus: readonly string[];
  readonly heldOut?: string;
  readonly saveEvery: number;
  readonly keep: "last" | "best";
  readonly dtype: "f16" | "f32";
  readonly threads: number | "auto";
}

/** What the command line asks for. */
export interface Launch {
  /** Of Remembered only what was given. */
  readonly given: { readonly [Name in keyof Remembered]: Remembered[Name] | undefined };
  readonly config: object;
  readonly out: string;
  readonly resume: boolean;
  readonly variant: "auto" | "simd" | "relaxed";
  readonly json: boolean;
}

const DEFAULTS = { saveEvery: 500, keep: "last", dtype: "f16", threads: 1 } as const;

const isText = (value: unknown): boolean => typeof value === "string" && value !== "";
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const CHECKS: { readonly [Name in keyof Required<Remembered>]: (value: unknown) => boolean } = {
  corpus: (value) => Array.isArray(value) && value.length > 0 && value.every(isText),
  heldOut: (value) => value === undefined || isText(value),
  saveEvery: isCount,
  keep: (value) => value === "last" || value === "best",
  dtype: (value) => value === "f16" || value === "f32",
  threads: (value) => value === "auto" || (isCount(value) && value !== 0),
};

/** From the file's text; `where` is its path. */
export function parseRemembered(text: string, where: string): Remembered {
  let value: Record<string, unknown> | undefined;
  try {
    value = JSON.parse(text) ?? {};
  } catch {
    // Told below: no name of it fits.
  }
  const wrong = Object.entries(CHECKS).find(([name, fits]) => !fits(value?.[name]))?.[0];
  if (wrong === undefined) return value as unknown as Remembered;
  throw new Error(`${where} is not as lookback train wrote it (${wrong}); delete it, and name the corpus again.`);
}

/** What was given, what the folder remembers where it was not, and the defaults. */
export function settle({ given, out }: Launch, before: Partial<Remembered> | undefined): Remembered {
  const named = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const settled: Omit<Remembered, "corpus"> & Partial<Remembered> = { ...DEFAULTS, ...before, ...named };
  if (settled.corpus === undefined)
    throw new Error(`${out} does not say what the run learns from: name the corpus once more.`);
  return settled as Remembered;
}

/** The engine that a run goes on with: the checkpoint's, unless another is named. */
export async function openEngine(
  { variant, out }: Launch,
  threads: Remembered["threads"],
  state: RunState | undefined,
): Promise<Lookback> {
  const isChosen = variant !== "auto";
  const saved = state?.engine;
  if (state === undefined || saved === undefined) return createLookback({ threads, variant });
  const by = `The checkpoint in ${out} was saved by ${engineText(saved)}`;
  const refuse = (why: string, other: string, cause?: unknown): never => {
    throw new Error(`${by}, ${why}: --variant ${other} goes on with it, but to other bits.`, { cause });
  };
  const lb = await createLookback({ threads, variant: isChosen ? variant : saved.variant }).catch((error: unknown) =>
    !isChosen && (error as { code?: unknown }).code === "relaxed-unsupported"
      ? refuse("which this engine does not have", "simd", error)
      : Promise.reject(error),
  );
  const isSame = isSameEngine(state, lb);
  if (!isSame && !isChosen) {
    lb.dispose();
    refuse(`and here it is ${engineText(lb)}`, lb.variant);
  }
  if (!isSame) console.error(printable(`${by}; it goes on with ${engineText(lb)}, to other bits.`));
  else if (saved.version !== VERSION)
    console.error(
      printable(`${out} was trained by lookback ${saved.version}; this is ${VERSION}, whose bits may be others.`),
    );
  return lb;
}
