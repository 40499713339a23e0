export const MAP_STYLES = `
.content { display: grid; gap: 8px; grid-template-columns: minmax(0, 1fr); }
.surface {
  border-radius: 4px;
  cursor: crosshair;
  max-width: 100%;
  overflow: hidden;
  position: relative;
  touch-action: pan-y;
  user-select: none;
  -webkit-user-select: none;
}
.surface.zoomed { cursor: grab; touch-action: none; }
.surface.zoomed:active { cursor: grabbing; }
canvas { display: block; }
.overlay { inset: 0; pointer-events: none; position: absolute; }

.toolbar { align-items: center; display: flex; flex-wrap: wrap; font-size: 13px; gap: 6px 12px; }
label { align-items: center; color: var(--_muted); display: inline-flex; gap: 5px; }
.group { display: inline-flex; }
button, select, summary {
  background: var(--_raised);
  border: 1px solid var(--_line);
  border-radius: 6px;
  color: var(--_ink);
  cursor: pointer;
  font: inherit;
  line-height: 1.3;
  min-height: 30px;
  min-width: 30px;
  padding: 3px 9px;
}
select { padding-inline: 5px; }
button:hover, summary:hover, select:hover { border-color: var(--_muted); }
button[aria-pressed="true"], button[aria-expanded="true"] { background: var(--_ink); border-color: var(--_ink); color: var(--_paper); }
button[aria-disabled="true"] { color: var(--_muted); cursor: default; opacity: 0.6; }
.group button:not(:first-child) { border-end-start-radius: 0; border-start-start-radius: 0; margin-inline-start: -1px; }
.group button:not(:last-child) { border-end-end-radius: 0; border-start-end-radius: 0; }
.save { position: relative; }
summary { align-items: center; display: inline-flex; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::after { content: "▾"; margin-inline-start: 6px; }
.menu {
  background: var(--_paper);
  border: 1px solid var(--_line);
  border-radius: 8px;
  box-shadow: 0 6px 24px rgb(0 0 0 / 18%);
  display: grid;
  gap: 2px;
  inset-inline-end: 0;
  margin-top: 4px;
  padding: 4px;
  position: absolute;
  white-space: nowrap;
  width: max-content;
  z-index: 2;
}
.menu button { background: none; border-color: transparent; text-align: start; }

.foot { max-width: max(var(--_width, 100%), min(100%, 420px)); align-items: baseline; display: flex; flex-wrap: wrap; gap: 6px 24px; justify-content: space-between; }
.readout {
  align-items: baseline;
  column-gap: 14px;
  display: flex;
  flex: 1 1 320px;
  flex-wrap: wrap;
  font-variant-numeric: tabular-nums;
  min-height: 1.45em;
}
.pair { font-weight: 600; overflow-wrap: anywhere; }
.token sub { color: var(--_muted); font-size: 11px; font-weight: 400; margin-inline-start: 2px; }
.arrow { color: var(--_accent); margin: 0 6px; }
.amount { font-weight: 650; }
.quiet, .score { color: var(--_muted); }
.legend { align-items: center; flex-wrap: wrap; color: var(--_muted); display: flex; font-size: 12px; font-variant-numeric: tabular-nums; gap: 6px; }
.ramp { border-radius: 3px; height: 10px; width: 96px; }
.legend > span:nth-child(n + 5) { margin-inline-start: 8px; }
.masked { align-items: center; display: inline-flex; gap: 5px; margin-inline-start: 8px; }
.swatch {
  background: repeating-linear-gradient(-45deg, var(--_masked) 0 3px, var(--_hatch) 3px 4px);
  border-radius: 3px;
  height: 12px;
  width: 12px;
}

.twin { max-height: 420px; overflow: auto; }
.turner { background: var(--_paper); display: flex; gap: 4px; inset-inline-start: 0; padding: 2px; position: sticky; top: 0; }
table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; }
caption { color: var(--_muted); padding: 4px 0; text-align: start; }
th, td { border: 1px solid var(--_line); padding: 2px 7px; text-align: end; white-space: nowrap; }
th { color: var(--_muted); font-weight: 600; }
`;
