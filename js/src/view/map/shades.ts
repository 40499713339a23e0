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

/** A ramp as pixels, and the same faded towards the paper. */
interface Tables {
  readonly paper: number;
  readonly full: Uint32Array;
  readonly faded: Uint32Array;
}

const tables = new WeakMap<Ramp, Tables>();

function tablesOf(ramp: Ramp, ground: readonly [number, number, number]): Tables {
  const known = tables.get(ramp);
  const paper = packed(ground);
  if (known?.paper === paper) return known;
  const colours = Array.from({ length: SHADES }, (_, i) => shadeAt(ramp, i / (SHADES - 1)));
  const made = {
    paper,
    full: Uint32Array.from(colours, packed),
    faded: Uint32Array.from(colours, (colour) => packed(mix(colour, ground, FADED))),
  };
  tables.set(ramp, made);
  return made;
}

/** The shades of a logarithmic scale by the leading bits of a float32 from 10^−DECADES to 1: 128 to each doubling. */
const BITS = 16;
const float = new Float32Array([10 ** -DECADES, 1]);
const bits = new Int32Array(float.buffer);
const LEAST = bits[0]!;
const ONE = bits[1]!;
let logarithms: Uint8Array | null = null;

function makeLogarithms(): Uint8Array {
  return Uint8Array.from({ length: (ONE - LEAST) >> BITS }, (_, i) => {
    bits[0] = LEAST + (i + 0.5) * 2 ** BITS;
    return shadeIndex(1 + Math.log10(float[0]!) / DECADES);
  });
}

/**
 * Weights: 0 is masked, a negative one is a weight that a filter fades. Scores: −∞ is masked. NaN has a colour of its own in both.
 */
export class Shades {
  readonly kind: AttentionKind;
  readonly scale: ScaleKind;
  /** The number with the strongest colour. */
  readonly extent: number;
  readonly ramp: Ramp;
  /** The number of a cell that is masked. */
  readonly maskedValue: number;
  readonly #tables: Tables;
  readonly #masked: [number, number, number];
  readonly #missing: [number, number, number];
  readonly #paper: [number, number, number];

  constructor(kind: AttentionKind, extent: number, scale: ScaleKind, colors: ColorScale, look: Look) {
    this.kind = kind;
    this.maskedValue = kind === "scores" ? Number.NEGATIVE_INFINITY : 0;
    this.scale = kind === "scores" ? "linear" : scale;
    this.extent = extent > 0 && Number.isFinite(extent) ? extent : 1;
    this.ramp = kind === "scores" ? signedRamp(look.scheme) : weightRamp(colors, look.scheme);
    this.#masked = parseColour(look.masked);
    this.#missing = parseColour(look.missing);
    this.#paper = parseColour(look.paper);
    this.#tables = tablesOf(this.ramp, this.#paper);
  }

  isMasked(value: number): boolean {
    return value === this.maskedValue;
  }

  colour(value: number): [number, number, number] {
    if (Number.isNaN(value)) return this.#missing;
    if (this.isMasked(value)) return this.#masked;
    const colour = shadeAt(this.ramp, this.#shade(value) / (SHADES - 1));
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
    for (let y = 0; y < rows; y++) this.#paintRow(data, (row + y) * stride + column, columns, pixels, y * pixelStride);
  }

  /** Called row by row: engines make fast code of what is called often. */
  #paintRow(data: Float32Array, from: number, count: number, pixels: Uint32Array, to: number): void {
    const masked = packed(this.#masked);
    const missing = packed(this.#missing);
    const { full, faded } = this.#tables;
    const signed = this.kind === "scores";
    const { maskedValue } = this;
    for (let i = 0; i < count; i++) {
      const value = data[from + i]!;
      if (value === maskedValue) pixels[to + i] = masked;
      else if (Number.isNaN(value)) pixels[to + i] = missing;
      else pixels[to + i] = (value < 0 && !signed ? faded : full)[this.#shade(value)]!;
    }
  }

  #shade(value: number): number {
    if (this.kind === "scores") return shadeIndex(0.5 + value / this.extent / 2);
    const size = Math.abs(value) / this.extent;
    if (this.scale === "linear") return shadeIndex(size);
    float[0] = size;
    const at = (bits[0]! - LEAST) >> BITS;
    logarithms ??= makeLogarithms();
    return at < 0 ? 0 : (logarithms[at] ?? SHADES - 1);
  }
}
