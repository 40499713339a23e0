import { fail } from "./errors.js";
import { readIntegers } from "./lists.js";
import type { Geometry } from "./shapes.js";
import type { QueryOffset } from "./types.js";

/** i + offset must stay within int32 for every row i. */
export const LIMIT = 2 ** 30 - 1;

/** The position of query row 0, per batch row; 0 where nothing depends on it. `needs` names an option that does. */
export function queryOffsets(
  offset: QueryOffset | undefined,
  needs: string | undefined,
  { batch, queryLength, keyLength }: Pick<Geometry, "batch" | "queryLength" | "keyLength">,
  keyLengths?: Int32Array,
): Int32Array {
  const offsets = new Int32Array(batch);
  if (offset === undefined) {
    if (needs !== undefined && queryLength !== keyLength && queryLength > 0 && keyLength > 0) {
      fail("query-offset-missing", missingOffset(needs, queryLength, keyLength));
    }
    return offsets;
  }
  if (offset === "start") return offsets;
  if (offset === "end") return offsets.map((_, b) => (keyLengths?.[b] ?? keyLength) - queryLength);
  const list = typeof offset === "number" ? new Array(batch).fill(offset) : offset;
  const each = `one per row of the batch of ${batch} (or 'start', 'end' or a number for all)`;
  return readIntegers(list, "queryOffset", each, [batch], [-LIMIT, LIMIT], "bad-query-offset");
}

/** Half of the ecosystem aligns the one way, half the other: so both are shown and neither is assumed. */
function missingOffset(needs: string, queryLength: number, keyLength: number): string {
  // Long sides are drawn small, with the longer one still the longer.
  const small = queryLength <= 8 && keyLength <= 8;
  const rows = small ? queryLength : queryLength < keyLength ? 2 : 4;
  const columns = small ? keyLength : queryLength < keyLength ? 4 : 2;
  const width = Math.max(columns * 2 - 1, 18);
  const picture = [`${"'start' (offset 0)".padEnd(width + 3)}'end' (offset Lk − Lq = ${keyLength - queryLength})`];
  for (let i = 0; i < rows; i++) {
    const [start, end] = [i, i + columns - rows].map((own) => drawRow(columns, own, needs.includes("causal")));
    picture.push(`${start!.padEnd(width + 3)}${end}`);
  }
  return [
    `${needs} with ${queryLength} queries and ${keyLength} keys needs queryOffset, the position of the first query among the keys:`,
    ...picture.map((line) => `  ${line}`.trimEnd()),
    `Queries that continue the keys (a cache) want 'end'; PyTorch's is_causal is 'start'. A number works, too.${small ? "" : " (Drawn smaller.)"}`,
  ].join("\n");
}

/** What a causal query sees, or else only where it stands. */
const drawRow = (columns: number, own: number, causal: boolean): string =>
  Array.from({ length: columns }, (_, j) => (j === own || (causal && j < own) ? "■" : "·")).join(" ");
