/**
 * Colours of the canvases. Signed numbers run from orange to blue, weights from paper to deep teal: both stay apart for every
 * common kind of colour blindness, and both change in lightness, so they survive a grey print.
 */
import { rgb } from "d3-color";
import { interpolateRgbBasis, piecewise } from "d3-interpolate";
import { type ScaleDiverging, type ScaleSequential, scaleDiverging, scaleSequential } from "d3-scale";

export type ScaleKind = "signed" | "weight" | "mask";

export interface Palette {
  readonly paper: string;
  readonly ink: string;
  readonly muted: string;
  readonly cellInk: string;
  readonly cellPaper: string;
  readonly hatch: string;
  readonly hatchPaper: string;
  readonly focus: string;
  readonly leak: string;
  readonly signed: (extent: number) => ScaleDiverging<string>;
  readonly weight: ScaleSequential<string>;
  readonly sans: string;
}

const SIGNED = {
  light: ["#a84a0c", "#e09a5c", "#f3ede4", "#84afdc", "#1d5a9e"],
  dark: ["#ffb27a", "#a5632e", "#2a2b33", "#3a6ea5", "#8cc4ff"],
};
const WEIGHT = {
  light: ["#f3f1ea", "#c5e0da", "#76b9b5", "#2a8794", "#14566f", "#0c3350"],
  dark: ["#23262e", "#1f4b57", "#1f7480", "#3fa39a", "#8fd0a8", "#e3f5c4"],
};

export function paletteFor(theme: "light" | "dark"): Palette {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const ramp = interpolateRgbBasis(WEIGHT[theme]);
  return {
    paper: read("--paper"),
    ink: read("--ink"),
    muted: read("--muted"),
    cellInk: theme === "light" ? "#16181d" : "#0d0f13",
    cellPaper: "#ffffff",
    hatch: read("--hatch"),
    hatchPaper: read("--hatch-paper"),
    focus: read("--focus"),
    leak: read("--leak"),
    signed: (extent) => scaleDiverging<string>([-extent, 0, extent], piecewise(SIGNED[theme])).clamp(true),
    weight: scaleSequential([0, 1], ramp).clamp(true),
    sans: read("--sans"),
  };
}

function luminance(colour: string): number {
  const { r, g, b } = rgb(colour);
  const linear = (c: number) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** Whichever of the two inks stands out more on `ground`. */
export function inkOn(ground: string, palette: Palette): string {
  const light = luminance(ground);
  const contrast = (other: number) => (Math.max(light, other) + 0.05) / (Math.min(light, other) + 0.05);
  return contrast(luminance(palette.cellPaper)) > contrast(luminance(palette.cellInk))
    ? palette.cellPaper
    : palette.cellInk;
}
