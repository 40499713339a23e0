/** A colour for each head: hues around the circle, neighbours far apart in lightness too, for eyes that see fewer hues. Each has its number beside it. */
import { hcl } from "d3-color";
import { cssColour, parseColour } from "../colours.js";

const LIGHTNESS = { light: [42, 56, 34], dark: [74, 60, 86] };
const CHROMA = { light: 62, dark: 52 };
/** The first one: blue. */
const START = 250;

export function headColours(heads: number, scheme: "light" | "dark"): string[] {
  return Array.from({ length: heads }, (_, head) => {
    const lightness = LIGHTNESS[scheme];
    const colour = hcl(START + (head * 360) / heads, CHROMA[scheme], lightness[head % lightness.length]!);
    return cssColour(parseColour(colour.rgb().clamp().formatHex()));
  });
}
