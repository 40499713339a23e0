import { BAR_STYLES, CONTROL_STYLES } from "../controls.js";

export const STEPS_STYLES = `
${CONTROL_STYLES}
${BAR_STYLES}
.content { container-type: inline-size; display: grid; gap: 12px; grid-template-columns: minmax(0, 1fr); }
.line { display: grid; gap: 20px 22px; grid-template-columns: repeat(4, minmax(0, 1fr)); }
@container (max-width: 1000px) { .line { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@container (max-width: 520px) { .line { grid-template-columns: minmax(0, 1fr); } }
figure { display: grid; gap: 6px; grid-row: span 2; grid-template-rows: subgrid; margin: 0; min-width: 0; }
.head { align-items: center; align-self: start; display: flex; gap: 10px; }
.operator {
  background: var(--_raised);
  border: 1px solid var(--_line);
  border-radius: 999px;
  flex: none;
  font: 600 13px / 1 var(--_font);
  padding: 7px 11px;
  white-space: nowrap;
}
figcaption { display: grid; line-height: 1.25; min-width: 0; }
figcaption span { color: var(--_muted); font-size: 12px; }
.readout { display: flex; flex-wrap: wrap; font-variant-numeric: tabular-nums; gap: 2px 16px; min-height: 1.45em; }
.pair { font-weight: 650; }
.value.weights { font-weight: 650; }
.quiet { color: var(--_muted); font-weight: 400; }
`;
