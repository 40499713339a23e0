type Value = string | number | boolean | undefined | ((event: Event) => void);
export type Child = Node | string | null;

/** Creates an element: `on…` listens, the rest are attributes (true = present); texts are texts, never markup. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Record<string, Value> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** A token within a text: its direction is its own. */
export const bdi = (text: string): HTMLElement => h("bdi", { dir: "auto" }, text);

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** For markup that is written as text. Characters that XML forbids are left out. */
export const escaped = (text: string): string =>
  text
    .replace(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, (character) => ("\t\n\r".includes(character) ? character : "\ufffd"))
    .replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character);

/** The nearest `lang`, across shadow trees. */
export function languageOf(element: Element): string {
  for (let at: Element | null = element; at; ) {
    const nearest: Element | null = at.closest("[lang]");
    if (nearest) return nearest.getAttribute("lang") ?? "";
    const root = at.getRootNode();
    at = root instanceof ShadowRoot ? root.host : null;
  }
  return "";
}
