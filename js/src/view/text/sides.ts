/** Which tokens a reader sees: one text that looks at itself, or queries and keys that are two texts. */
import type { Attention } from "../data.js";
import type { Direction } from "../looks.js";
import type { Token } from "../tokens.js";

export interface Side {
  readonly tokens: readonly Token[];
  /** The row or column of the matrix that a token's looks are in; −1 = none. */
  readonly places: readonly number[];
  /** Which way a chosen token is followed. */
  readonly direction: Direction;
}

export interface Sides {
  /** One, or queries and keys. */
  readonly sides: readonly [Side] | readonly [Side, Side];
}

const all = (length: number): number[] => Array.from({ length }, (_, place) => place);

/** A text that looks at itself is shown once; of one whose first tokens are keys only, only the later ones can be followed as queries. */
export function sidesOf(attention: Attention, direction: Direction): Sides["sides"] {
  const { queryTokens, keyTokens, queryOffset } = attention;
  if (queryOffset !== null) {
    const rows = new Map(queryTokens.map(({ position }, row) => [position, row]));
    const columns = new Set(keyTokens.map(({ position }) => position));
    if (queryTokens.every(({ position }) => columns.has(position))) {
      const places =
        direction === "from" ? keyTokens.map(({ position }) => rows.get(position) ?? -1) : all(keyTokens.length);
      return [{ tokens: keyTokens, places, direction }];
    }
  }
  return [
    { tokens: queryTokens, places: all(queryTokens.length), direction: "from" },
    { tokens: keyTokens, places: all(keyTokens.length), direction: "to" },
  ];
}

/** Where in a text the looks of a chosen token fall: the place of the token for each row or column of the matrix. */
export function targetsOf(
  attention: Attention,
  sides: Sides["sides"],
  chosen: number,
): { side: number; tokens: readonly number[] } {
  const other = sides.length === 2 ? 1 - chosen : 0;
  const side = sides[other]!;
  if (sides.length === 2 || sides[0].direction === "from") return { side: other, tokens: all(side.tokens.length) };
  const columns = new Map(side.tokens.map(({ position }, place) => [position, place]));
  return { side: other, tokens: attention.queryTokens.map(({ position }) => columns.get(position) ?? -1) };
}
