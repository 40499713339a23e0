/** Gives a file to the reader. */
import { h } from "./dom.js";

export function saveFile(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  // The download has taken it by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
