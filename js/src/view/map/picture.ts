/** What a map shows, made from the data and the attributes. */
import type { ColorScale } from "../colours.js";
import type { Attention, HeadChoice } from "../data.js";
import type { Look } from "../styles.js";
import { type Bars, barsOf, type Filter, faded, isFiltering, type MarginalKind, marginalsOf } from "./filter.js";
import { type Pooling, Pyramid } from "./pyramid.js";
import { type ScaleKind, Shades } from "./shades.js";
import { Tiles } from "./tiles.js";

export interface Picture {
  readonly attention: Attention;
  /** The numbers, and the same with those that a filter fades made negative. */
  readonly matrix: Float32Array;
  readonly shown: Float32Array;
  readonly bars: Bars | null;
  /** Whether any cell is. */
  readonly isMasked: boolean;
  readonly shades: Shades;
  readonly tiles: Tiles;
}

/** All that a picture depends on besides the data. */
export interface PictureSettings {
  readonly layer: number;
  readonly head: HeadChoice;
  readonly look: Look;
  readonly pool: Pooling;
  readonly scale: ScaleKind;
  readonly marginals: MarginalKind;
  readonly colorScale: ColorScale;
  readonly valueWeighted: boolean;
  readonly filter: Filter;
  /** The number with the strongest colour; 0 = the matrix's own. */
  readonly max: number;
}

export function makePicture(attention: Attention, settings: PictureSettings): Picture {
  const { layer, head, look, scale, filter, pool, marginals } = settings;
  const { queryLength: rows, keyLength: columns, kind } = attention;
  const matrix = (settings.valueWeighted && attention.valueWeighted(layer, head)) || attention.matrix(layer, head);
  const filtering = kind === "weights" && isFiltering(filter);
  const shown = filtering ? faded(matrix, rows, columns, filter) : matrix;
  // The mean of weights that stay and weights that fade would be neither.
  const pyramid = new Pyramid(shown, rows, columns, filtering ? "max" : pool, kind);
  const shades = new Shades(kind, settings.max || pyramid.extent(), scale, settings.colorScale, look);
  return {
    attention,
    matrix,
    shown,
    shades,
    tiles: new Tiles(pyramid, shades),
    isMasked: matrix.includes(shades.maskedValue),
    bars: marginals === "none" || kind === "scores" ? null : barsOf(marginalsOf(matrix, rows, columns, marginals)),
  };
}
