/** Which part of a matrix is seen, and how large. Pure: numbers in, numbers out. Lengths are CSS pixels. */

/** The window that the matrix is seen through. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly rows: number;
  readonly columns: number;
  /** Cell height over cell width; 1 unless a matrix is so flat that its rows could not be seen. */
  readonly aspect: number;
  /** Width of a cell when everything is seen. */
  readonly fit: number;
}

export interface View {
  /** Width of a cell. */
  readonly cell: number;
  /** What of the whole picture lies left of and above the window. */
  readonly x: number;
  readonly y: number;
}

export interface Cell {
  readonly query: number;
  readonly key: number;
}

const LARGEST_FIT = 44;
export const LARGEST_CELL = 72;
const FLATTEST = 36;

/** The window for a matrix in the room there is. */
export function frameFor(rows: number, columns: number, width: number, height: number, density: number): Frame {
  const room = Math.max(width, 40);
  let cell = Math.min(room / columns, LARGEST_FIT);
  // A low picture is stretched, until its rows can be seen.
  const aspect = rows * cell < FLATTEST ? Math.min(FLATTEST / (rows * cell), LARGEST_FIT / cell) : 1;
  cell = Math.min(cell, Math.max(height, 40) / (rows * aspect));
  // Cells of whole device pixels have sharp edges.
  if (cell >= 4) cell = Math.floor(cell * density) / density;
  return { width: columns * cell, height: rows * cell * aspect, rows, columns, aspect, fit: cell };
}

export const wholeView = (frame: Frame): View => ({ cell: frame.fit, x: 0, y: 0 });

export const isWhole = (frame: Frame, view: View): boolean => view.cell <= frame.fit * 1.0001;

/** The nearest view that shows nothing but matrix. */
export function clamped(frame: Frame, { cell, x, y }: View): View {
  const most = Math.max(LARGEST_CELL, frame.fit);
  const size = Math.min(most, Math.max(frame.fit, cell));
  const within = (at: number, whole: number, seen: number) => Math.max(0, Math.min(at, whole - seen));
  return {
    cell: size,
    x: within(x, frame.columns * size, frame.width),
    y: within(y, frame.rows * size * frame.aspect, frame.height),
  };
}

/** Larger or smaller by `factor`, while the point (px, py) of the window stays where it is. */
export function zoomed(frame: Frame, view: View, factor: number, px: number, py: number): View {
  const most = Math.max(LARGEST_CELL, frame.fit);
  const cell = Math.min(most, Math.max(frame.fit, view.cell * factor));
  const ratio = cell / view.cell;
  return clamped(frame, { cell, x: (view.x + px) * ratio - px, y: (view.y + py) * ratio - py });
}

export const moved = (frame: Frame, view: View, dx: number, dy: number): View =>
  clamped(frame, { ...view, x: view.x + dx, y: view.y + dy });

/** The view that shows a cell, moved no further than it must be. */
export function revealing(frame: Frame, view: View, { query, key }: Cell): View {
  const height = view.cell * frame.aspect;
  const shift = (at: number, from: number, size: number, seen: number) =>
    at < from ? at : at + size > from + seen ? at + size - seen : from;
  return clamped(frame, {
    cell: view.cell,
    x: shift(key * view.cell, view.x, view.cell, frame.width),
    y: shift(query * height, view.y, height, frame.height),
  });
}

export function cellAt(frame: Frame, view: View, px: number, py: number): Cell | null {
  if (px < 0 || py < 0 || px >= frame.width || py >= frame.height) return null;
  const key = Math.floor((view.x + px) / view.cell);
  const query = Math.floor((view.y + py) / (view.cell * frame.aspect));
  return query < frame.rows && key < frame.columns ? { query, key } : null;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Where a cell is in the window. */
export function boxOf(frame: Frame, view: View, { query, key }: Cell): Box {
  const height = view.cell * frame.aspect;
  return { x: key * view.cell - view.x, y: query * height - view.y, width: view.cell, height };
}

/** First and last (excluded) rows and columns that are seen. */
export function seen(frame: Frame, view: View): { rows: [number, number]; columns: [number, number] } {
  const height = view.cell * frame.aspect;
  const range = (from: number, length: number, size: number, count: number): [number, number] => [
    Math.max(0, Math.floor(from / size)),
    Math.min(count, Math.ceil((from + length) / size - 1e-6)),
  ];
  return {
    rows: range(view.y, frame.height, height, frame.rows),
    columns: range(view.x, frame.width, view.cell, frame.columns),
  };
}

/** The level of a pyramid whose cells are no smaller than a device pixel. */
export function levelFor(frame: Frame, view: View, density: number): number {
  const smallest = Math.min(view.cell, view.cell * frame.aspect) * density;
  return smallest >= 1 ? 0 : Math.ceil(-Math.log2(smallest) - 1e-9);
}
