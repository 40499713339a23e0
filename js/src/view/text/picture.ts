/** Links between tokens, and the text as a picture that is taken from where its tokens stand. */
import type { CurveMark, Mark, Scene } from "../marks.js";
import type { Look } from "../styles.js";
import { runsRightToLeft } from "../tokens.js";
import type { Flow } from "./flow.js";

export interface Link {
  readonly points: CurveMark["points"];
  /** Of the strongest. */
  readonly share: number;
}

/** How far an arc rises. */
const RISE = 22;

/** From the upper edge of one token to that of another: an arc above the line, or a bow to another line. */
export function curveOf(from: DOMRect, to: DOMRect): CurveMark["points"] {
  const x0 = from.x + from.width / 2;
  const x3 = to.x + to.width / 2;
  const sameLine = Math.abs(from.y - to.y) < from.height / 2;
  if (sameLine) {
    const rise = Math.min(RISE, 8 + Math.abs(x3 - x0) / 12);
    return [x0, from.y, x0 + (x3 - x0) * 0.2, from.y - rise, x3 - (x3 - x0) * 0.2, to.y - rise, x3, to.y];
  }
  const down = to.y > from.y;
  const y0 = down ? from.y + from.height : from.y;
  const y3 = down ? to.y : to.y + to.height;
  const bend = Math.max(10, Math.abs(y3 - y0) / 2) * (down ? 1 : -1);
  return [x0, y0, x0, y0 + bend, x3, y3 - bend, x3, y3];
}

const widthOf = (share: number): number => 1 + 2.5 * share;
const opacityOf = (share: number): number => 0.3 + 0.6 * share;

export function drawLinks(svg: SVGSVGElement, links: readonly Link[]): void {
  svg.replaceChildren(
    ...links.map(({ points: [x0, y0, ...rest], share }) => {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", `M${x0} ${y0}C${rest.join(" ")}`);
      path.setAttribute("stroke-width", String(widthOf(share)));
      path.setAttribute("stroke-opacity", String(opacityOf(share)));
      return path;
    }),
  );
}

/** Space around the text. */
const EDGE = 12;

export function sceneOf(host: HTMLElement, flows: readonly Flow[], links: readonly Link[], look: Look): Scene {
  const origin = host.getBoundingClientRect();
  const shift = host.scrollTop;
  const marks: Mark[] = flows.flatMap((flow) => {
    const size = Number.parseFloat(getComputedStyle(flow.element).fontSize);
    return flow.tokens.flatMap((token, place): Mark[] => {
      const span = flow.spanOf(place);
      const text = span?.textContent?.trim() ?? "";
      if (!span || text === "") return [];
      const box = flow.boxOf(place, origin);
      const y = box.y + shift;
      const ground = span.style.backgroundColor;
      const chosen = span.classList.contains("chosen") || span.classList.contains("at");
      const rect: Mark[] =
        ground || chosen
          ? [
              {
                is: "rect",
                x: box.x,
                y,
                width: box.width,
                height: box.height,
                radius: 4,
                fill: ground || look.paper,
                ...(chosen && { stroke: look.accent }),
              },
            ]
          : [];
      const ink = span.style.color || (token.special ? look.muted : look.ink);
      const leftward = runsRightToLeft(text);
      const x = leftward ? box.x + box.width : box.x;
      return [
        ...rect,
        {
          is: "text",
          text,
          x,
          y: y + box.height / 2,
          align: leftward ? "right" : "left",
          fill: ink,
          size: token.special ? size * 0.8 : size,
        },
      ];
    });
  });
  const curves: Mark[] = links.map(({ points, share }) => ({
    is: "curve",
    points,
    stroke: look.accent,
    width: widthOf(share),
    opacity: opacityOf(share),
  }));
  return {
    width: host.clientWidth,
    height: host.scrollHeight + EDGE,
    paper: look.paper,
    font: look.font,
    marks: [...marks, ...curves],
  };
}
