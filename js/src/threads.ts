/** Loaded where more than one thread is asked for. */
import { fail } from "./errors.js";
import type { RawModule } from "./module.js";
import type { Platform } from "./platform.js";

/** What 'auto' takes at most: beyond it memory, not processors, bounds a call, and a page is not alone. */
const AUTO_MOST = 8;

/** How many threads there are to be, and why only one where more were wanted. */
export interface ThreadChoice {
  readonly count: number;
  readonly reason: string | undefined;
}

/** What keeps threads from sharing memory here, if anything does. */
function obstacle(): string | undefined {
  if (globalThis.crossOriginIsolated === false) {
    return "not cross-origin isolated (the page needs the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp)";
  }
  try {
    new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true });
    return undefined;
  } catch {
    return "this engine has no shared WebAssembly memory";
  }
}

/** One thread in place of `wanted`: 'auto' is content with it, a number is not. */
export function oneThread(wanted: number | "auto", reason: string, cause?: unknown): ThreadChoice {
  if (wanted === "auto") return { count: 1, reason };
  return fail("threads-unsupported", `createLookback: threads ${wanted}: ${reason}. Use threads 'auto' or 1.`, cause);
}

export async function chooseThreads(platform: Platform, wanted: number | "auto"): Promise<ThreadChoice> {
  const reason = obstacle();
  if (reason !== undefined) return oneThread(wanted, reason);
  const count = wanted === "auto" ? Math.min(await platform.processors(), AUTO_MOST) : wanted;
  return count > 1 ? { count, reason: undefined } : { count: 1, reason: "one processor" };
}

/** Begins to share work among `count` threads; resolves when all of them run. */
export async function startThreads(raw: RawModule, count: number): Promise<void> {
  const threads = raw.setThreads(count);
  while (raw.runningThreads() < threads) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Workers live for ever unless they are ended: a net for instances that were forgotten. */
const forgotten = new FinalizationRegistry<RawModule>((raw) => raw.PThread?.terminateAllThreads());
export const endThreadsWith = (owner: object, raw: RawModule): void => forgotten.register(owner, raw);
