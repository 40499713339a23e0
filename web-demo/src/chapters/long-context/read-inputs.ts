/** The page's side of `inputs-worker`. */
import type { Inputs } from "./inputs";
import type { InputsOrder } from "./inputs-worker";

/** Queries, keys and values of a text's first `length` words; the worker lives as long as that takes. */
export async function readInputs(order: InputsOrder, signal: AbortSignal): Promise<Inputs> {
  const worker = new Worker(new URL("./inputs-worker.ts", import.meta.url), { type: "module", name: "read-text" });
  try {
    return await new Promise<Inputs>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Inputs>) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message || "the worker could not be started"));
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      worker.postMessage(order);
    });
  } finally {
    worker.terminate();
  }
}
