/** What the elements' events tell. */
import type { HeadChoice } from "./data.js";
import type { Token } from "./tokens.js";

/** What 'attention-hover' and 'attention-select' tell; null where nothing is pointed at, or the lock is released. */
export interface CellDetail {
  readonly layer: number;
  readonly head: HeadChoice;
  /** Row and column of the matrix as it is shown. */
  readonly query: number;
  readonly key: number;
  readonly queryToken: Token;
  readonly keyToken: Token;
  readonly weight: number;
  /** q · k, and what softmax sees of it, where q and k were given. */
  readonly product?: number;
  readonly score?: number;
}

/** What 'attention-head' tells: the layer and head that a reader chose. */
export interface HeadDetail {
  readonly layer: number;
  readonly head: HeadChoice;
}
