/** What the elements draw, after reading: heads × [Lq, Lk] numbers per layer, and what their rows and columns are called. */
import type { Token } from "./tokens.js";

/** What the numbers are: weights from 0 on, or signed scores (−∞ = masked). */
export type AttentionKind = "weights" | "scores";

/** Rows of a head: [length, width]. */
export interface Rows {
  readonly data: Float32Array;
  readonly width: number;
}

/** What a head compared, where it was given. */
export interface HeadVectors {
  readonly queries?: Rows;
  readonly keys?: Rows;
  readonly values?: Rows;
  /** Multiplies q · k; default 1/√width. */
  readonly scale: number;
}

export interface AttentionShape {
  readonly kind: AttentionKind;
  readonly layers: number;
  /** Of each layer. */
  readonly heads: number;
  readonly queryLength: number;
  readonly keyLength: number;
  /** Their numbers in the model. */
  readonly layerNumbers: readonly number[];
  readonly headNumbers: readonly number[];
  readonly queryTokens: readonly Token[];
  readonly keyTokens: readonly Token[];
  /** The key that is query row 0's own position, where both are one text; null where queries and keys are different texts. */
  readonly queryOffset: number | null;
}

/** Which head: its place in the list, or the mean of several, or of all of its layer's. */
export type HeadChoice = number | readonly number[] | "mean";

export class Attention implements AttentionShape {
  readonly kind: AttentionKind;
  readonly layers: number;
  readonly heads: number;
  readonly queryLength: number;
  readonly keyLength: number;
  readonly layerNumbers: readonly number[];
  readonly headNumbers: readonly number[];
  readonly queryTokens: readonly Token[];
  readonly keyTokens: readonly Token[];
  readonly queryOffset: number | null;
  readonly #matrix: (layer: number, head: number) => Float32Array;
  readonly #vectors: (layer: number, head: number) => HeadVectors | null;
  readonly #made = new Map<string, Float32Array>();

  constructor(
    shape: AttentionShape,
    /** [Lq, Lk] of a head, made when it is asked for. */
    matrix: (layer: number, head: number) => Float32Array,
    vectors: (layer: number, head: number) => HeadVectors | null = () => null,
  ) {
    this.kind = shape.kind;
    this.layers = shape.layers;
    this.heads = shape.heads;
    this.queryLength = shape.queryLength;
    this.keyLength = shape.keyLength;
    this.layerNumbers = shape.layerNumbers;
    this.headNumbers = shape.headNumbers;
    this.queryTokens = shape.queryTokens;
    this.keyTokens = shape.keyTokens;
    this.queryOffset = shape.queryOffset;
    this.#matrix = matrix;
    this.#vectors = vectors;
  }

  /** [Lq, Lk], row-major: how strongly each query looks at each key. Not to be written to. */
  matrix(layer: number, head: HeadChoice): Float32Array {
    return this.#once(`${layer} ${head}`, () =>
      typeof head === "number"
        ? this.#matrix(layer, head)
        : meanOf(this.headList(head).map((each) => this.matrix(layer, each))),
    );
  }

  /** Which of a layer and its heads are not there, in words; null if all are. */
  missing(layer: number, head: HeadChoice): string | null {
    const isThere = (place: number, count: number) => Number.isInteger(place) && place >= 0 && place < count;
    if (!isThere(layer, this.layers)) return `layer ${layer} does not exist: there are ${this.layers}, from 0 on.`;
    const other = this.headList(head).find((each) => !isThere(each, this.heads));
    return other === undefined ? null : `head ${other} does not exist: there are ${this.heads}, from 0 on.`;
  }

  /**
   * Each weight times the length of the value it carries, ‖v_j‖: what a key really contributes (Kobayashi et al. 2020, arXiv:2004.10102).
   * null where there are no values.
   */
  valueWeighted(layer: number, head: HeadChoice): Float32Array | null {
    if (typeof head !== "number") {
      const all = this.headList(head).map((each) => this.valueWeighted(layer, each));
      return all.every((each) => each !== null)
        ? this.#once(`${layer} ${head} values`, () => meanOf(all as Float32Array[]))
        : null;
    }
    const values = this.vectors(layer, head)?.values;
    if (!values) return null;
    return this.#once(`${layer} ${head} values`, () => {
      const lengths = Float32Array.from({ length: this.keyLength }, (_, key) => norm(values, key));
      return this.matrix(layer, head).map((weight, index) =>
        weight === 0 ? 0 : weight * (lengths[index % this.keyLength] ?? 0),
      );
    });
  }

  /** The heads of a choice, by their places. */
  headList(head: HeadChoice): readonly number[] {
    if (typeof head === "number") return [head];
    return head === "mean" ? Array.from({ length: this.heads }, (_, each) => each) : head;
  }

  /** The vectors behind a head, where they were given. */
  vectors(layer: number, head: HeadChoice): HeadVectors | null {
    return typeof head === "number" ? this.#vectors(layer, head) : null;
  }

  /** q · k of a pair and what softmax sees of it, scale · q · k; null where they were not given. */
  score(layer: number, head: HeadChoice, query: number, key: number): { product: number; scaled: number } | null {
    const vectors = this.vectors(layer, head);
    if (!vectors?.queries || !vectors.keys) return null;
    const { queries, keys, scale } = vectors;
    let product = 0;
    for (let d = 0; d < queries.width; d++)
      product += (queries.data[query * queries.width + d] ?? 0) * (keys.data[key * keys.width + d] ?? 0);
    return { product, scaled: product * scale };
  }

  /** Row and column of two positions in the text; null where they are not shown. */
  cellOf(queryPosition: number, keyPosition: number): { query: number; key: number } | null {
    const query = this.queryTokens.findIndex(({ position }) => position === queryPosition);
    const key = this.keyTokens.findIndex(({ position }) => position === keyPosition);
    return query < 0 || key < 0 ? null : { query, key };
  }

  /** Whether a key is later in the text than its query. */
  isFuture(query: number, key: number): boolean {
    return (
      this.queryOffset !== null &&
      (this.keyTokens[key]?.position ?? key) > (this.queryTokens[query]?.position ?? query + this.queryOffset)
    );
  }

  /** The same without its control tokens' rows and columns. */
  withoutSpecial(): Attention {
    const kept = (tokens: readonly Token[]) => tokens.flatMap((token, index) => (token.special ? [] : [index]));
    const rows = kept(this.queryTokens);
    const columns = kept(this.keyTokens);
    if (rows.length === this.queryLength && columns.length === this.keyLength) return this;
    const chosen = <T>(list: readonly T[], places: readonly number[]) => places.map((place) => list[place] as T);
    const shape = {
      ...shapeOf(this),
      queryLength: rows.length,
      keyLength: columns.length,
      queryTokens: chosen(this.queryTokens, rows),
      keyTokens: chosen(this.keyTokens, columns),
    };
    const pick = (source: Float32Array, width: number, columnsOf: readonly number[], rowsOf: readonly number[]) => {
      const picked = new Float32Array(rowsOf.length * columnsOf.length);
      let at = 0;
      for (const row of rowsOf) for (const column of columnsOf) picked[at++] = source[row * width + column] ?? 0;
      return picked;
    };
    const pickRows = (source: Rows | undefined, places: readonly number[]): Rows | undefined =>
      source && {
        width: source.width,
        data: pick(source.data, source.width, [...Array(source.width).keys()], places),
      };
    return new Attention(
      shape,
      (layer, head) => pick(this.matrix(layer, head), this.keyLength, columns, rows),
      (layer, head) => {
        const vectors = this.vectors(layer, head);
        return (
          vectors && {
            ...vectors,
            queries: pickRows(vectors.queries, rows),
            keys: pickRows(vectors.keys, columns),
            values: pickRows(vectors.values, columns),
          }
        );
      },
    );
  }

  #once(name: string, make: () => Float32Array): Float32Array {
    const known = this.#made.get(name);
    if (known) return known;
    const made = make();
    this.#made.set(name, made);
    return made;
  }
}

export const shapeOf = (attention: AttentionShape): AttentionShape => ({
  kind: attention.kind,
  layers: attention.layers,
  heads: attention.heads,
  queryLength: attention.queryLength,
  keyLength: attention.keyLength,
  layerNumbers: attention.layerNumbers,
  headNumbers: attention.headNumbers,
  queryTokens: attention.queryTokens,
  keyTokens: attention.keyTokens,
  queryOffset: attention.queryOffset,
});

function meanOf(matrices: readonly Float32Array[]): Float32Array {
  if (matrices.length === 1) return matrices[0]!;
  const mean = new Float32Array(matrices[0]?.length ?? 0);
  for (const matrix of matrices) for (let i = 0; i < mean.length; i++) mean[i]! += matrix[i]! / matrices.length;
  return mean;
}

function norm({ data, width }: Rows, row: number): number {
  let sum = 0;
  for (let d = 0; d < width; d++) sum += (data[row * width + d] ?? 0) ** 2;
  return Math.sqrt(sum);
}
