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
const STACKED_CELL = 46;
const MIN_CELL = 13;

export function gutterOf(measure: MatrixMeasure): number {
  return (measure.rowLabel > 0 ? Math.min(measure.rowLabel, MAX_LABEL) + 7 : 0) + BRACKET;
}

const isSlanted = (measure: MatrixMeasure, cell: number) => measure.colLabel > cell - 3;

/** Height that the column labels take. */
export function labelHeight(measure: MatrixMeasure, cell: number): number {
  if (measure.colLabel === 0) return 0;
  return isSlanted(measure, cell) ? Math.min(measure.colLabel, MAX_LABEL) * 0.72 + 16 : LABEL_SIZE + 9;
}

/** `labelRoom`: height kept free above the cells even without labels, so that neighbours stand at one height. */
export function layoutMatrix(measure: MatrixMeasure, cell: number, labelRoom = 0): MatrixLayout {
  const { rows, cols } = measure;
  const slanted = isSlanted(measure, cell);
  const left = gutterOf(measure);
  // A slanted last label leans out over the right edge.
  const right = slanted
    ? Math.max(BRACKET + 2, Math.min(measure.colLabel, MAX_LABEL) * 0.72 - cell / 2 + 8)
    : BRACKET + 2;
  const top = Math.max(labelHeight(measure, cell), labelRoom) + 2;
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
    digits: cell >= 39 ? 2 : cell >= 29 ? 1 : null,
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

export interface Fit {
  readonly cell: number;
  /** Every matrix has a line to itself. */
  readonly stacked: boolean;
}

/** How many lines the matrices take at this cell size; null = one of them is wider than the page. */
function linesAt(
  matrices: readonly MatrixMeasure[],
  cell: number,
  width: number,
  rooms: readonly number[],
): number | null {
  let lines = 1;
  let used = 0;
  for (const [index, measure] of matrices.entries()) {
    const operator = rooms[index] ?? 0;
    const own = layoutMatrix(measure, cell).width;
    if (own > width) return null;
    const next = used === 0 ? own : used + operator + own;
    if (next <= width) used = next;
    else {
      lines++;
      used = Math.min(width, operator + own);
    }
  }
  return lines;
}

/**
 * One cell size for all matrices of a figure: the largest at which they stand in as few lines as still leaves the cells
 * comfortable. `rooms`: what stands before each of them takes so much.
 */
export function fitMatrices(
  matrices: readonly MatrixMeasure[],
  width: number,
  rooms: readonly number[],
  preferred = MAX_CELL,
): Fit {
  let cell = MIN_CELL;
  for (let allowed = 1; allowed <= matrices.length && cell < Math.min(COMFORTABLE, preferred); allowed++) {
    // Alone on a line a matrix may be large, but a column of large ones is a long way to scroll.
    const most = allowed > 1 && allowed === matrices.length ? Math.min(preferred, STACKED_CELL) : preferred;
    for (let candidate = most; candidate > cell; candidate--) {
      const lines = linesAt(matrices, candidate, width, rooms);
      if (lines !== null && lines <= allowed) cell = candidate;
    }
  }
  return { cell, stacked: matrices.length > 1 && linesAt(matrices, cell, width, rooms) === matrices.length };
}
