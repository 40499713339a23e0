/** What all elements look like. Every colour can be set from outside as --attention-…, and every part has a name for ::part. */

export const BASE_STYLES = `
:host {
  --_paper: var(--attention-paper, light-dark(#ffffff, #15171c));
  --_raised: var(--attention-raised, light-dark(#f5f6f8, #20232b));
  --_ink: var(--attention-ink, light-dark(#16181d, #f1f0ec));
  --_muted: var(--attention-muted, light-dark(#565b66, #a6abb6));
  --_line: var(--attention-line, light-dark(#d9dce2, #383d49));
  --_accent: var(--attention-accent, light-dark(#b3124e, #ff9dbd));
  --_masked: var(--attention-masked, light-dark(#e7e5e0, #2b2927));
  --_hatch: var(--attention-hatch, light-dark(#c9c5bc, #47443f));
  --_missing: var(--attention-missing, light-dark(#d6188a, #ff5cc4));
  --_font: var(--attention-font, system-ui, "PingFang SC", "Noto Sans CJK SC", "Microsoft YaHei", sans-serif);
  background: var(--_paper);
  color: var(--_ink);
  display: block;
  font: 400 14px / 1.45 var(--_font);
  max-width: 100%;
  min-width: 0;
  position: relative;
}
:host([theme="light"]) { color-scheme: light; }
:host([theme="dark"]) { color-scheme: dark; }
:host([hidden]) { display: none; }
*, *::before, *::after { box-sizing: border-box; }
[hidden] { display: none !important; }
#probe {
  color: var(--_paper);
  height: 0;
  outline-color: var(--_ink);
  overflow: hidden;
  position: absolute;
  transition: color 1ms, outline-color 1ms;
  visibility: hidden;
  width: 0;
}
.visually-hidden {
  clip-path: inset(50%);
  height: 1px;
  margin: -1px;
  overflow: hidden;
  position: absolute;
  white-space: nowrap;
  width: 1px;
}
.message {
  border: 1px solid var(--_line);
  border-radius: 8px;
  margin: 0;
  padding: 12px 16px;
}
.message.error { border-color: var(--_accent); border-inline-start-width: 4px; }
.message strong { display: block; font-weight: 650; margin-bottom: 2px; }
.message p { margin: 0; overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; }
`;

/** The colours and the font as the page and its theme make them. */
export interface Look {
  readonly scheme: "light" | "dark";
  readonly paper: string;
  readonly raised: string;
  readonly ink: string;
  readonly muted: string;
  readonly line: string;
  readonly accent: string;
  readonly masked: string;
  readonly hatch: string;
  readonly missing: string;
  readonly font: string;
}

/** What the rules make of the colours, told by a probe: an element within `host` that nobody sees. */
export function readLook(probe: HTMLElement, host: HTMLElement): Look {
  const style = getComputedStyle(probe);
  const read = (name: string) => {
    probe.style.setProperty("border-color", `var(--_${name})`);
    return style.borderTopColor;
  };
  const names = ["paper", "raised", "ink", "muted", "line", "accent", "masked", "hatch", "missing"] as const;
  const colours = Object.fromEntries(names.map((name) => [name, read(name)])) as Record<(typeof names)[number], string>;
  probe.style.removeProperty("border-color");
  probe.style.setProperty("background-color", "light-dark(#fff, #000)");
  const scheme = style.backgroundColor === "rgb(0, 0, 0)" ? "dark" : "light";
  probe.style.removeProperty("background-color");
  return { ...colours, scheme, font: getComputedStyle(host).fontFamily };
}

/** A class of elements with style rules of its own. */
interface Styled {
  readonly styles: string;
}

/** Constructed sheets pass where a page's policy forbids inline styles. */
const sheets = new Map<Styled, CSSStyleSheet>();

export function sheetOf(element: Styled): CSSStyleSheet {
  const known = sheets.get(element);
  if (known) return known;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(BASE_STYLES + element.styles);
  sheets.set(element, sheet);
  return sheet;
}
