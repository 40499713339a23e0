import { BAR_STYLES, CONTROL_STYLES } from "../controls.js";

export const TEXT_STYLES = `
${CONTROL_STYLES}
${BAR_STYLES}
.content { display: grid; gap: 10px; grid-template-columns: minmax(0, 1fr); }
.texts { display: grid; gap: 18px; max-height: var(--attention-text-height, none); overflow-y: auto; padding: 26px 6px 6px; position: relative; }
.texts.two { grid-template-columns: repeat(auto-fit, minmax(min(100%, 280px), 1fr)); }
.side { align-content: start; display: grid; gap: 18px; min-width: 0; }
.side h3 { color: var(--_muted); font-size: 12px; font-weight: 600; margin: 0; }
.text {
  border-radius: 4px;
  cursor: default;
  font-size: 17px;
  line-height: 2.15;
  overflow-wrap: anywhere;
  unicode-bidi: isolate;
  white-space: pre-wrap;
}
.token { border-radius: 4px; box-decoration-break: clone; -webkit-box-decoration-break: clone; cursor: pointer; padding-block: 3px; transition: background-color 90ms; }
.token.special { color: var(--_muted); font-family: ui-monospace, monospace; font-size: 0.8em; unicode-bidi: isolate; }
.token.still { cursor: default; }
.token.masked { color: var(--_muted); }
.token.at { outline: 2px solid var(--_ink); outline-offset: 0; }
.token.chosen { outline: 2px solid var(--_accent); outline-offset: 0; }
.links { height: 100%; inset: 0; overflow: visible; pointer-events: none; position: absolute; width: 100%; }
.links path { fill: none; stroke: var(--_accent); stroke-linecap: round; }
.readout { align-items: baseline; column-gap: 12px; display: flex; flex-wrap: wrap; font-variant-numeric: tabular-nums; min-height: 1.45em; }
.pair { font-weight: 600; }
.arrow { color: var(--_accent); }
.quiet { color: var(--_muted); }
@media (prefers-reduced-motion: reduce) { .token { transition: none; } }
`;
