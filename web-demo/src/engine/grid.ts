/** A matrix as the page draws it, row-major. It only ever holds numbers that the engine returned or was given. */
export interface Grid {
  readonly rows: number;
  readonly cols: number;
  readonly data: Float32Array;
}

export function grid(rows: number, cols: number, data: Float32Array): Grid {
  if (data.length !== rows * cols) throw new RangeError(`a ${rows} × ${cols} grid cannot hold ${data.length} numbers`);
  return { rows, cols, data };
}

export function at(matrix: Grid, row: number, col: number): number {
  return matrix.data[row * matrix.cols + col] ?? Number.NaN;
}

export function rowOf(matrix: Grid, row: number): Float32Array {
  return matrix.data.subarray(row * matrix.cols, (row + 1) * matrix.cols);
}

/** The same numbers with rows and columns exchanged, to draw Kᵀ. */
export function transposed(matrix: Grid): Grid {
  const data = new Float32Array(matrix.data.length);
  for (let row = 0; row < matrix.rows; row++)
    for (let col = 0; col < matrix.cols; col++) data[col * matrix.rows + row] = at(matrix, row, col);
  return grid(matrix.cols, matrix.rows, data);
}

/** Rows [from, to) as a matrix of their own. */
export function rowsOf(matrix: Grid, from: number, to: number): Grid {
  return grid(to - from, matrix.cols, matrix.data.slice(from * matrix.cols, to * matrix.cols));
}

/** Plane `index` of a tensor [..., rows, cols]. */
export function plane(tensor: { data: Float32Array; dims: number[] }, index: number): Grid {
  const cols = tensor.dims.at(-1) ?? 0;
  const rows = tensor.dims.at(-2) ?? 0;
  return grid(rows, cols, tensor.data.slice(index * rows * cols, (index + 1) * rows * cols));
}

export function largest(matrix: Grid): number {
  let most = 0;
  for (const value of matrix.data) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  return most;
}
