/** Attention from a JSON file. */
import { LookbackError } from "lookback";

/** JSON, and Python's NaN and Infinity with it. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const words = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;
    const quoted = text.replace(words, (found) => (found.startsWith('"') ? found : `"${found}"`));
    if (quoted === text) throw error;
    return JSON.parse(quoted);
  }
}

export async function loadJson(address: URL, signal: AbortSignal): Promise<unknown> {
  const fail = (message: string, cause?: unknown): never => {
    throw new LookbackError("attention-unreachable", `${address}: ${message}`, cause);
  };
  let response: Response;
  let text: string;
  try {
    response = await fetch(address, { signal });
    text = await response.text();
  } catch (error) {
    return fail(`cannot be fetched (${(error as Error).message}).`, error);
  }
  if (!response.ok) return fail(`the server answered ${response.status} ${response.statusText}.`);
  try {
    return parseJson(text);
  } catch (error) {
    const html = /^\s*<(!doctype|html)/i.test(text) ? "it is an HTML page, not JSON. " : "it is not JSON: ";
    return fail(`${html}${(error as Error).message}`, error);
  }
}
