import { CONTROL_STYLES } from "../controls.js";

export const MAP_STYLES = `
${CONTROL_STYLES}
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
.legend > .more { margin-inline-start: 8px; }
.masked { align-items: center; display: inline-flex; gap: 5px; margin-inline-start: 8px; }
.swatch {
  background: var(--_masked);
  border-radius: 3px;
  height: 12px;
  width: 12px;
}
.swatch.hatched { background: repeating-linear-gradient(-45deg, var(--_masked) 0 3px, var(--_hatch) 3px 4px); }

`;
