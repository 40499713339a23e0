/** The four pictures with their titles as one, taken from where they stand. */
import type { AttentionMap } from "../map/element.js";
import type { Mark, Scene, TextMark } from "../marks.js";
import type { Look } from "../styles.js";

export interface Figure {
  readonly operator: HTMLElement;
  readonly title: HTMLElement;
  readonly how: HTMLElement;
  readonly map: AttentionMap;
}

/** An element's text, line by line as it is broken. */
function linesOf(element: HTMLElement): { text: string; box: DOMRect }[] {
  const node = element.firstChild;
  if (!(node instanceof Text)) return [];
  const lines: { text: string; box: DOMRect }[] = [];
  const range = document.createRange();
  [...node.data].reduce((at, character) => {
    range.setStart(node, at);
    range.setEnd(node, at + character.length);
    const box = range.getBoundingClientRect();
    const line = lines.at(-1);
    if (line && Math.abs(line.box.top - box.top) < box.height / 2) line.text += character;
    else lines.push({ text: character, box });
    return at + character.length;
  }, 0);
  return lines;
}

/** Room around them. */
const EDGE = 12;

export function sceneOf(host: HTMLElement, figures: readonly Figure[], look: Look, density: number): Scene {
  const origin = host.getBoundingClientRect();
  const boxOf = ({ left, top, width, height }: DOMRect) => ({
    x: left - origin.left + EDGE,
    y: top - origin.top + EDGE,
    width,
    height,
  });
  const texts = (element: HTMLElement, fill: string, weight: number): TextMark[] => {
    const size = Number.parseFloat(getComputedStyle(element).fontSize);
    return linesOf(element).map(({ text, box }) => {
      const { x, y, height } = boxOf(box);
      return { is: "text", text: text.trim(), x, y: y + height / 2, align: "left", fill, size, weight };
    });
  };
  const marks = figures.flatMap(({ operator, title, how, map }, index): Mark[] => {
    const image = map.toCanvas({ density });
    const { x, y } = boxOf(map.getBoundingClientRect());
    const pill = boxOf(operator.getBoundingClientRect());
    return [
      { is: "rect", ...pill, radius: pill.height / 2, fill: look.raised, stroke: look.line },
      ...texts(operator, look.ink, 600),
      ...texts(title, look.ink, 700),
      ...texts(how, look.muted, 400),
      {
        is: "image",
        image,
        drawing: () => map.toSVG({ pattern: `masked-${index}` }),
        x,
        y,
        width: image.width / density,
        height: image.height / density,
      },
    ];
  });
  const bottom = Math.max(0, ...marks.map((mark) => (mark.is === "image" ? mark.y + mark.height : 0)));
  const [width, height] = [host.clientWidth + 2 * EDGE, Math.ceil(bottom + EDGE)];
  return { width, height, paper: look.paper, font: look.font, marks };
}
