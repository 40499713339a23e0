export const MAP_STYLES = `
.content { display: grid; gap: 8px; justify-items: start; }
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
.readout {
  align-items: baseline;
  column-gap: 14px;
  display: flex;
  flex-wrap: wrap;
  font-variant-numeric: tabular-nums;
  min-height: 1.45em;
}
.pair { font-weight: 600; }
.token sub { color: var(--_muted); font-size: 10px; font-weight: 400; margin-inline-start: 2px; }
.arrow { color: var(--_accent); margin: 0 6px; }
.amount { font-weight: 650; }
.quiet, .score { color: var(--_muted); }
`;
