/**
 * Colour scales. All of them change steadily in lightness, so that they can be read with every common kind of colour blindness, and in a grey
 * print: viridis and cividis (made for that end), blues, and for signed numbers orange to blue.
 */
import { interpolateRgbBasis } from "d3-interpolate";
import { interpolateCividis, interpolateViridis } from "d3-scale-chromatic";

export type ColorScale = "blues" | "viridis" | "cividis";
export type Scheme = "light" | "dark";

export const COLOR_SCALES: readonly ColorScale[] = ["blues", "viridis", "cividis"];

const BLUES = {
  light: ["#f4f6f9", "#cddff0", "#8ebfdf", "#4292c6", "#17599c", "#08254f"],
  dark: ["#20252f", "#1c3f66", "#2467a3", "#4d97cf", "#97c9ec", "#eef7ff"],
};
const SIGNED = {
  light: ["#a84a0c", "#e09a5c", "#f3f1ec", "#84afdc", "#1d5a9e"],
  dark: ["#ffb27a", "#a5632e", "#262932", "#3a6ea5", "#8cc4ff"],
};

/** Shades of a scale; more cannot be told apart on a screen. */
export const SHADES = 256;

/** A scale from 0 to 1 in 256 shades, as red, green, blue bytes. */
export type Ramp = Uint8Array;

const ramps = new Map<string, Ramp>();

function rampOf(name: string, shade: (share: number) => string): Ramp {
  const known = ramps.get(name);
  if (known) return known;
  const ramp = new Uint8Array(SHADES * 3);
  for (let i = 0; i < SHADES; i++) ramp.set(parseColour(shade(i / (SHADES - 1))), i * 3);
  ramps.set(name, ramp);
  return ramp;
}

export function weightRamp(scale: ColorScale, scheme: Scheme): Ramp {
  if (scale === "viridis") return rampOf(scale, interpolateViridis);
  if (scale === "cividis") return rampOf(scale, interpolateCividis);
  return rampOf(`${scale} ${scheme}`, interpolateRgbBasis(BLUES[scheme]));
}

/** For signed numbers: its middle is 0. */
export const signedRamp = (scheme: Scheme): Ramp => rampOf(`signed ${scheme}`, interpolateRgbBasis(SIGNED[scheme]));

/** Red, green and blue of #rgb, #rrggbb, rgb(…) and color(srgb …): what browsers give as computed colours, and d3. */
export function parseColour(colour: string): [number, number, number] {
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(colour)?.[1];
  if (hex) {
    const wide = hex.length === 3 ? [...hex].map((digit) => digit + digit).join("") : hex;
    return [0, 2, 4].map((at) => Number.parseInt(wide.slice(at, at + 2), 16)) as [number, number, number];
  }
  const numbers = (colour.match(/-?[\d.]+(e-?\d+)?/gi) ?? []).map(Number);
  const scaled = colour.startsWith("color(") ? numbers.map((number) => number * 255) : numbers;
  return [0, 1, 2].map((at) => Math.round(Math.min(255, Math.max(0, scaled[at] ?? 0)))) as [number, number, number];
}

export function shadeIndex(share: number): number {
  return share <= 0 ? 0 : share >= 1 ? SHADES - 1 : Math.round(share * (SHADES - 1));
}

export function shadeAt(ramp: Ramp, share: number): [number, number, number] {
  const at = shadeIndex(share) * 3;
  return [ramp[at] ?? 0, ramp[at + 1] ?? 0, ramp[at + 2] ?? 0];
}

export const cssColour = ([red, green, blue]: readonly [number, number, number]): string =>
  `#${((red << 16) | (green << 8) | blue).toString(16).padStart(6, "0")}`;

/** Relative luminance by WCAG 2. */
export function luminance([red, green, blue]: readonly [number, number, number]): number {
  const linear = (byte: number) => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

/** Black or white, whichever stands out more on `ground`. */
export function inkOn(ground: readonly [number, number, number]): string {
  return luminance(ground) > 0.179 ? "#000000" : "#ffffff";
}

/** `share` of b in a. */
export function mix(
  a: readonly [number, number, number],
  b: readonly [number, number, number],
  share: number,
): [number, number, number] {
  return [0, 1, 2].map((i) => Math.round((a[i] ?? 0) * (1 - share) + (b[i] ?? 0) * share)) as [number, number, number];
}
