/** Loaded where more than one thread is asked for; imports nothing that the main entry has, or bundlers would split that. */
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

/** How many there can be of those wanted. */
export async function chooseThreads(platform: Platform, wanted: number | "auto"): Promise<ThreadChoice> {
  const reason = obstacle();
  if (reason !== undefined) return { count: 1, reason };
  const count = wanted === "auto" ? Math.min(await platform.processors(), AUTO_MOST) : wanted;
  return { count, reason: count > 1 ? undefined : "one processor" };
}

/** Begins to share work among `count` threads; resolves when all of them run. */
export async function startThreads(raw: RawModule, count: number): Promise<void> {
  const threads = raw.setThreads(count);
  while (raw.runningThreads() < threads) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Workers live for ever unless they are ended: a net for instances that were forgotten. */
const forgotten = new FinalizationRegistry<RawModule>((raw) => raw.PThread?.terminateAllThreads());
export const endThreadsWith = (owner: object, raw: RawModule): void => forgotten.register(owner, raw);
