/** Loss curves as an SVG file, which every browser shows, in light and dark. */
import { scaleLinear } from "d3-scale";
import { schemeTableau10 } from "d3-scale-chromatic";
import { line } from "d3-shape";

export interface Series {
  readonly name: string;
  /** [step, nats per token], by rising step. */
  readonly points: readonly (readonly [number, number])[];
  /** Curves that belong together share a colour; the first has number 0. */
  readonly color: number;
  readonly dashed?: boolean;
}

const [WIDTH, HEIGHT] = [800, 450];
const MARGIN = { top: 48, right: 200, bottom: 48, left: 60 };
const STYLE = `
  svg { color-scheme: light dark; }
  .ground { fill: #fff; } text { fill: #222; font: 13px system-ui, sans-serif; } .title { font-weight: 600; font-size: 16px; }
  .grid { stroke: #ddd; } .axis { stroke: #888; }
  @media (prefers-color-scheme: dark) { .ground { fill: #16181d; } text { fill: #ddd; } .grid { stroke: #333; } }`;

/** A chart of loss over steps, a legend at its right. */
export function lossChart(title: string, series: readonly Series[]): string {
  const all = series.flatMap(({ points }) => points);
  const [right, bottom] = [WIDTH - MARGIN.right, HEIGHT - MARGIN.bottom];
  const x = scaleLinear([0, Math.max(...all.map(([step]) => step))], [MARGIN.left, right]);
  const y = scaleLinear([0, Math.max(...all.map(([, loss]) => loss))], [bottom, MARGIN.top]).nice();
  const path = line<readonly [number, number]>(
    ([step]) => x(step),
    ([, loss]) => y(loss),
  ).digits(1);
  const grid = y.ticks(6).map((tick) => {
    const at = y(tick).toFixed(1);
    return `<line class="grid" x1="${MARGIN.left}" x2="${right}" y1="${at}" y2="${at}"/><text x="${MARGIN.left - 8}" y="${at}" text-anchor="end" dominant-baseline="middle">${tick}</text>`;
  });
  const steps = x
    .ticks(6)
    .map((tick) => `<text x="${x(tick).toFixed(1)}" y="${bottom + 20}" text-anchor="middle">${tick}</text>`);
  const curves = series.map(
    (one) =>
      `<path fill="none" stroke-width="2" ${strokeOf(one)} d="${path(one.points)}"><title>${escaped(one.name)}</title></path>`,
  );
  const legend = series.map((one, at) => {
    const height = MARGIN.top + 10 + 22 * at;
    return `<line stroke-width="3" ${strokeOf(one)} x1="${right + 16}" x2="${right + 44}" y1="${height}" y2="${height}"/><text x="${right + 52}" y="${height}" dominant-baseline="middle">${escaped(one.name)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${escaped(title)}">
<style>${STYLE}
</style>
<rect class="ground" width="${WIDTH}" height="${HEIGHT}"/>
<text class="title" x="${MARGIN.left}" y="26">${escaped(title)}</text>
${grid.join("\n")}
<line class="axis" x1="${MARGIN.left}" x2="${right}" y1="${bottom}" y2="${bottom}"/>
${steps.join("\n")}
<text x="${(MARGIN.left + right) / 2}" y="${HEIGHT - 8}" text-anchor="middle">step</text>
<text transform="translate(16 ${(MARGIN.top + bottom) / 2}) rotate(-90)" text-anchor="middle">loss, nats per token</text>
${curves.join("\n")}
${legend.join("\n")}
</svg>
`;
}

const strokeOf = ({ color, dashed }: Series): string =>
  `stroke="${schemeTableau10[color % schemeTableau10.length]}"${dashed ? ' stroke-dasharray="6 4"' : ""}`;

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

const escaped = (text: string): string => text.replace(/[&<>"]/g, (one) => ENTITIES[one]!);
