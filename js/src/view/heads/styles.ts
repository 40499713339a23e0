import { BAR_STYLES, CONTROL_STYLES } from "../controls.js";

export const HEADS_STYLES = `
${CONTROL_STYLES}
${BAR_STYLES}
.content { display: grid; gap: 14px; grid-template-columns: minmax(0, 1fr); }
.overview { direction: ltr; display: grid; gap: 3px; justify-content: start; }
.row { display: contents; }
.overview .name { align-self: center; color: var(--_muted); font-size: 11px; font-variant-numeric: tabular-nums; padding-inline-end: 5px; text-align: end; }
.overview .name.column { align-self: end; padding: 0; text-align: center; }
.overview .thumbnail {
  background: none;
  border: 0;
  border-radius: 0;
  cursor: pointer;
  display: block;
  min-height: 0;
  min-width: 0;
  outline: 1px solid var(--_line);
  outline-offset: 0;
  padding: 0;
}
.overview canvas { display: block; height: 100%; image-rendering: pixelated; pointer-events: none; width: 100%; }
.overview .thumbnail:hover { outline: 2px solid var(--_muted); }
.overview .thumbnail[aria-selected="true"] { outline: 3px solid var(--_accent); z-index: 1; }
.overview .thumbnail:focus-visible { outline: 3px solid var(--_ink); outline-offset: 1px; z-index: 2; }

.tiles { align-items: center; display: flex; flex-wrap: wrap; gap: 4px; }
.tiles .name { color: var(--_muted); font-size: 13px; margin-inline-end: 6px; }
.tiles .tile {
  background: var(--tile);
  border: 2px solid var(--tile);
  border-radius: 6px;
  color: var(--tile-ink);
  cursor: pointer;
  font: inherit;
  font-size: 12px;
  font-variant-numeric: tabular-nums;
  font-weight: 650;
  height: 28px;
  min-height: 0;
  min-width: 28px;
  padding: 0 4px;
}
@media (pointer: coarse) { .tiles .tile { height: 44px; min-width: 44px; } }
.tiles .tile[aria-pressed="false"] { background: transparent; border-style: dashed; color: var(--_muted); }

.columns { border: 1px solid var(--_line); border-radius: 8px; overflow-y: auto; position: relative; }
.columns.still { border-color: transparent; }
.tall { position: relative; }
.picture { inset-inline: 0; margin-bottom: calc(-1 * var(--tall)); pointer-events: none; position: sticky; top: 0; }
.picture canvas { position: absolute; top: 0; }
.list { bottom: 0; position: absolute; top: 0; }
.list.queries { left: 0; }
.list.keys { right: 0; }
.item {
  cursor: pointer;
  font-size: 14px;
  height: 24px;
  line-height: 24px;
  max-width: 100%;
  overflow: hidden;
  padding: 0 8px;
  position: absolute;
  text-overflow: ellipsis;
  white-space: pre;
}
.queries .item { border-radius: 4px; right: 0; text-align: right; }
.keys .item { cursor: default; left: 0; right: 0; }
.item.special { color: var(--_muted); font-size: 12px; }
.item.at { background: var(--_raised); }
.item[aria-selected="true"] { background: var(--_ink); color: var(--_paper); }
.item .amount { color: var(--_muted); font-size: 12px; font-variant-numeric: tabular-nums; position: absolute; background: var(--_paper); padding-inline-start: 6px; right: 6px; top: 0; }
.readout { column-gap: 12px; display: flex; flex-wrap: wrap; font-variant-numeric: tabular-nums; min-height: 1.45em; }
.pair { font-weight: 600; }
.quiet { color: var(--_muted); }
`;
