/** A button that copies text, and says whether it could. */
import { h } from "./dom";

export function copyButton(
  words: { readonly copy: string; readonly copied: string; readonly failed: string },
  text: () => string,
): HTMLElement {
  const button = h("button", { type: "button", class: "copy" }, words.copy);
  const told = h("span", { class: "visually-hidden", role: "status" });
  button.addEventListener("click", async () => {
    let said = words.copied;
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      // A page that is not secure, or a reader who does not allow it.
      said = words.failed;
    }
    button.textContent = said;
    told.textContent = said;
    setTimeout(() => {
      button.textContent = words.copy;
    }, 1600);
  });
  return h("span", { class: "copy-place" }, button, told);
}
