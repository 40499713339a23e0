/** Where everything of a matrix goes. Pure: widths in, rectangles out. */

export interface MatrixLayout {
  readonly rows: number;
  readonly cols: number;
  readonly cell: number;
  readonly gap: number;
  /** Left and top edge of the first cell: room for the labels. */
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** Column labels stand upright on their side where they are wider than a cell. */
  readonly slanted: boolean;
  /** Digits after the point that fit into a cell; null = none at all. */
  readonly digits: number | null;
  readonly fontSize: number;
}

export interface MatrixMeasure {
  readonly rows: number;
  readonly cols: number;
  /** Widest label in px, at the label size. */
  readonly rowLabel: number;
  readonly colLabel: number;
}

export const LABEL_SIZE = 13;
/** Room for the bracket on each side. */
export const BRACKET = 7;
export const MAX_LABEL = 84;
const MAX_CELL = 54;
const COMFORTABLE = 34;
const MIN_CELL = 13;

export function gutterOf(measure: MatrixMeasure): number {
  return (measure.rowLabel > 0 ? Math.min(measure.rowLabel, MAX_LABEL) + 7 : 0) + BRACKET;
}

export function layoutMatrix(measure: MatrixMeasure, cell: number): MatrixLayout {
  const { rows, cols } = measure;
  const slanted = measure.colLabel > cell - 3;
  const labelHeight =
    measure.colLabel === 0 ? 0 : slanted ? Math.min(measure.colLabel, MAX_LABEL) * 0.72 + 16 : LABEL_SIZE + 9;
  const left = gutterOf(measure);
  // A slanted last label leans out over the right edge.
  const right = slanted ? Math.max(BRACKET + 2, Math.min(measure.colLabel, MAX_LABEL) * 0.72 - cell / 2 + 8) : BRACKET + 2;
  const top = labelHeight + 2;
  return {
    rows,
    cols,
    cell,
    gap: cell >= 26 ? 2 : 1,
    left,
    top,
    width: Math.ceil(left + cols * cell + right),
    height: Math.ceil(top + rows * cell + 3),
    slanted,
    digits: cell >= 40 ? 2 : cell >= 29 ? 1 : null,
    fontSize: cell >= 46 ? 13 : cell >= 40 ? 12 : 11,
  };
}

export interface CellPosition {
  readonly row: number;
  readonly col: number;
}

export function cellAt(layout: MatrixLayout, x: number, y: number): CellPosition | null {
  const col = Math.floor((x - layout.left) / layout.cell);
  const row = Math.floor((y - layout.top) / layout.cell);
  return row >= 0 && row < layout.rows && col >= 0 && col < layout.cols ? { row, col } : null;
}

/**
 * One cell size for all matrices of a figure: the largest at which they stand in as few lines as still leaves the cells
 * comfortable. `operator` is the room that stands between two of them.
 */
export function cellSize(matrices: readonly MatrixMeasure[], width: number, operator: number, preferred = MAX_CELL): number {
  const fits = (cell: number, lines: number): boolean => {
    let used = 1;
    let line = 0;
    for (const measure of matrices) {
      const own = layoutMatrix(measure, cell).width;
      if (own > width) return false;
      const next = line === 0 ? own : line + operator + own;
      if (next <= width) line = next;
      else {
        used++;
        line = operator + own;
        if (line > width) return false;
      }
    }
    return used <= lines;
  };
  const largest = (lines: number): number => {
    for (let cell = preferred; cell > MIN_CELL; cell--) if (fits(cell, lines)) return cell;
    return MIN_CELL;
  };
  let best = MIN_CELL;
  for (let lines = 1; lines <= matrices.length; lines++) {
    best = Math.max(best, largest(lines));
    if (best >= Math.min(COMFORTABLE, preferred)) break;
  }
  return best;
}
