/** From a number to its colour. */
import {
  type ColorScale,
  cssColour,
  inkOn,
  mix,
  parseColour,
  type Ramp,
  SHADES,
  shadeAt,
  shadeIndex,
  signedRamp,
  weightRamp,
} from "../colours.js";
import type { AttentionKind } from "../data.js";
import type { Look } from "../styles.js";

export type ScaleKind = "linear" | "log";
export const SCALES: readonly ScaleKind[] = ["linear", "log"];

/** A logarithmic scale spans this much: what is smaller than 1/10,000 of the largest looks like the smallest. */
const DECADES = 4;
const FADED = 0.82;

const packed = ([red, green, blue]: readonly [number, number, number]): number =>
  ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/**
 * Weights: 0 is masked, a negative one is a weight that a filter fades. Scores: −∞ is masked. NaN has a colour of its own in both.
 */
export class Shades {
  readonly kind: AttentionKind;
  readonly scale: ScaleKind;
  /** The number with the strongest colour. */
  readonly extent: number;
  readonly ramp: Ramp;
  readonly #table = new Uint32Array(SHADES);
  readonly #faded = new Uint32Array(SHADES);
  readonly #masked: [number, number, number];
  readonly #missing: [number, number, number];
  readonly #paper: [number, number, number];

  constructor(kind: AttentionKind, extent: number, scale: ScaleKind, colors: ColorScale, look: Look) {
    this.kind = kind;
    this.scale = kind === "scores" ? "linear" : scale;
    this.extent = extent > 0 && Number.isFinite(extent) ? extent : 1;
    this.ramp = kind === "scores" ? signedRamp(look.scheme) : weightRamp(colors, look.scheme);
    this.#masked = parseColour(look.masked);
    this.#missing = parseColour(look.missing);
    this.#paper = parseColour(look.paper);
    for (let i = 0; i < SHADES; i++) {
      const colour = shadeAt(this.ramp, i / (SHADES - 1));
      this.#table[i] = packed(colour);
      this.#faded[i] = packed(mix(colour, this.#paper, FADED));
    }
  }

  /** 0 … 1 along the ramp. */
  share(value: number): number {
    if (this.kind === "scores") return 0.5 + value / this.extent / 2;
    const size = Math.abs(value) / this.extent;
    return this.scale === "linear" ? size : 1 + Math.log10(Math.max(size, 1e-30)) / DECADES;
  }

  isMasked(value: number): boolean {
    return this.kind === "scores" ? value === Number.NEGATIVE_INFINITY : value === 0;
  }

  colour(value: number): [number, number, number] {
    if (Number.isNaN(value)) return this.#missing;
    if (this.isMasked(value)) return this.#masked;
    const colour = shadeAt(this.ramp, this.share(value));
    return this.kind === "weights" && value < 0 ? mix(colour, this.#paper, FADED) : colour;
  }

  css(value: number): string {
    return cssColour(this.colour(value));
  }

  ink(value: number): string {
    return inkOn(this.colour(value));
  }

  /** Colours a rectangle of a matrix into pixels. */
  paint(
    data: Float32Array,
    stride: number,
    [row, column, rows, columns]: readonly [number, number, number, number],
    pixels: Uint32Array,
    pixelStride: number,
  ): void {
    const masked = packed(this.#masked);
    const missing = packed(this.#missing);
    const signed = this.kind === "scores";
    const linear = this.scale === "linear";
    const factor = (SHADES - 1) / this.extent;
    for (let y = 0; y < rows; y++) {
      const from = (row + y) * stride + column;
      const to = y * pixelStride;
      for (let x = 0; x < columns; x++) {
        const value = data[from + x]!;
        if (this.isMasked(value)) pixels[to + x] = masked;
        else if (Number.isNaN(value)) pixels[to + x] = missing;
        else if (signed) pixels[to + x] = this.#table[shadeIndex(this.share(value))]!;
        else {
          const size = value < 0 ? -value : value;
          const shade = linear ? Math.min(SHADES - 1, Math.round(size * factor)) : shadeIndex(this.share(size));
          pixels[to + x] = (value < 0 ? this.#faded : this.#table)[shade]!;
        }
      }
    }
  }
}
