import { fail, refuse } from "./errors.js";
import type { QueryOffset } from "./types.js";

/** i + offset must stay within int32 for every row i. */
const LIMIT = 2 ** 30 - 1;

/** The position of query row 0, per batch row. 0 where nothing depends on it. */
export function queryOffsets(
  offset: QueryOffset | undefined,
  causal: boolean,
  batch: number,
  queryLength: number,
  keyLength: number,
): Int32Array {
  if (offset === undefined) {
    if (causal && queryLength !== keyLength && queryLength > 0 && keyLength > 0) {
      fail("query-offset-missing", missingOffset(queryLength, keyLength));
    }
    return new Int32Array(batch);
  }
  if (offset === "start") return new Int32Array(batch);
  if (offset === "end") return new Int32Array(batch).fill(keyLength - queryLength);
  if (typeof offset === "number") return new Int32Array(batch).fill(checkOffset(offset));
  if (!Array.isArray(offset) && !ArrayBuffer.isView(offset)) badOffset(offset);
  const list = Array.from(offset as ArrayLike<number>, checkOffset);
  if (list.length !== batch) {
    fail("bad-query-offset", `queryOffset: ${list.length} values for a batch of ${batch}; give one per batch row.`);
  }
  return Int32Array.from(list);
}

function badOffset(value: unknown): never {
  refuse(
    "bad-query-offset",
    "queryOffset",
    `'start', 'end', or integers within ±${LIMIT}, one or one per batch row`,
    value,
  );
}

const checkOffset = (value: unknown): number =>
  Number.isInteger(value) && Math.abs(value as number) <= LIMIT ? (value as number) : badOffset(value);

/** Half of the ecosystem aligns the one way, half the other: so both are shown and neither is assumed. */
function missingOffset(queryLength: number, keyLength: number): string {
  // Long sides are drawn small, with the longer one still the longer.
  const small = queryLength <= 8 && keyLength <= 8;
  const rows = small ? queryLength : queryLength < keyLength ? 2 : 4;
  const columns = small ? keyLength : queryLength < keyLength ? 4 : 2;
  const width = Math.max(columns * 2 - 1, 18);
  const picture = [`${"'start' (offset 0)".padEnd(width + 3)}'end' (offset Lk − Lq = ${keyLength - queryLength})`];
  for (let i = 0; i < rows; i++) {
    picture.push(`${drawRow(columns, i).padEnd(width + 3)}${drawRow(columns, i + columns - rows)}`);
  }
  return [
    `causal with ${queryLength} queries and ${keyLength} keys needs queryOffset, the position of the first query among the keys:`,
    ...picture.map((line) => `  ${line}`.trimEnd()),
    `Queries that continue the keys (a cache) want 'end'; PyTorch's is_causal is 'start'. A number works, too.${small ? "" : " (Drawn smaller.)"}`,
  ].join("\n");
}

const drawRow = (columns: number, lastVisible: number): string =>
  Array.from({ length: columns }, (_, j) => (j <= lastVisible ? "■" : "·")).join(" ");
