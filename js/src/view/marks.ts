/** A picture as a list of marks, which a canvas draws and an SVG file holds: what is seen and what is saved are one. */
import { LookbackError } from "lookback";
import { escaped } from "./dom.js";
import { runsRightToLeft } from "./tokens.js";

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface RectMark extends Box {
  readonly is: "rect";
  readonly fill: string;
  readonly opacity?: number;
  readonly radius?: number;
  readonly stroke?: string;
}

export interface TextMark {
  readonly is: "text";
  readonly text: string;
  readonly x: number;
  /** Of its middle. */
  readonly y: number;
  /** Where x is: at the left, the right or the middle of the text, in whatever direction it runs. */
  readonly align: "left" | "right" | "center";
  readonly fill: string;
  readonly size: number;
  readonly weight?: number;
}

/** A cubic Bézier curve. */
export interface CurveMark {
  readonly is: "curve";
  readonly points: readonly [number, number, number, number, number, number, number, number];
  readonly stroke: string;
  readonly width: number;
  readonly opacity: number;
}

export interface ImageMark extends Box {
  readonly is: "image";
  readonly image: HTMLCanvasElement;
  /** The same as an SVG document, which a drawing holds instead of its pixels. */
  readonly drawing?: () => string;
}

export type Mark = RectMark | TextMark | CurveMark | ImageMark;

export interface Scene {
  readonly width: number;
  readonly height: number;
  readonly paper: string;
  readonly font: string;
  readonly marks: readonly Mark[];
}

function drawMark(context: CanvasRenderingContext2D, mark: Mark, font: string): void {
  if (mark.is === "rect") {
    context.globalAlpha = mark.opacity ?? 1;
    context.fillStyle = mark.fill;
    context.beginPath();
    context.roundRect(mark.x, mark.y, mark.width, mark.height, mark.radius ?? 0);
    context.fill();
    if (!mark.stroke) return;
    context.globalAlpha = 1;
    context.strokeStyle = mark.stroke;
    context.lineWidth = 1.5;
    context.stroke();
  } else if (mark.is === "text") {
    context.globalAlpha = 1;
    context.fillStyle = mark.fill;
    context.font = `${mark.weight ?? 400} ${mark.size}px ${font}`;
    context.textAlign = mark.align;
    context.textBaseline = "middle";
    context.direction = runsRightToLeft(mark.text) ? "rtl" : "ltr";
    context.fillText(mark.text, mark.x, mark.y);
  } else if (mark.is === "curve") {
    const [x0, y0, x1, y1, x2, y2, x3, y3] = mark.points;
    context.globalAlpha = mark.opacity;
    context.strokeStyle = mark.stroke;
    context.lineWidth = mark.width;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x1, y1, x2, y2, x3, y3);
    context.stroke();
  } else {
    context.globalAlpha = 1;
    context.imageSmoothingEnabled = false;
    context.drawImage(mark.image, mark.x, mark.y, mark.width, mark.height);
  }
}

export function drawMarks(context: CanvasRenderingContext2D, marks: readonly Mark[], font: string): void {
  for (const mark of marks) drawMark(context, mark, font);
  context.globalAlpha = 1;
}

const at = (value: number): string => String(Math.round(value * 100) / 100);

const boxOf = ({ x, y, width, height }: Box): string =>
  `x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}"`;

const opacityOf = (name: string, opacity: number | undefined): string =>
  opacity === undefined || opacity === 1 ? "" : ` ${name}="${Math.round(opacity * 1000) / 1000}"`;

function svgMark(mark: Mark): string {
  if (mark.is === "rect") {
    const stroke = mark.stroke ? ` stroke="${mark.stroke}" stroke-width="1.5"` : "";
    const radius = mark.radius ? ` rx="${mark.radius}"` : "";
    return `<rect ${boxOf(mark)}${radius} fill="${mark.fill}"${opacityOf("fill-opacity", mark.opacity)}${stroke}/>`;
  }
  if (mark.is === "curve") {
    const [x0, y0, ...rest] = mark.points.map(at);
    return `<path d="M${x0} ${y0}C${rest.join(" ")}" fill="none" stroke="${mark.stroke}" stroke-width="${at(mark.width)}"${opacityOf("stroke-opacity", mark.opacity)}/>`;
  }
  if (mark.is === "image" && mark.drawing)
    return mark.drawing().replace(/^<svg([^>]*?) width="[^"]*" height="[^"]*"/, `<svg$1 ${boxOf(mark)}`);
  if (mark.is === "image")
    return `<image ${boxOf(mark)} preserveAspectRatio="none" image-rendering="pixelated" href="${mark.image.toDataURL()}"/>`;
  const leftward = runsRightToLeft(mark.text);
  // In a line that runs to the left its start is at the right.
  const anchor = mark.align === "center" ? "middle" : (mark.align === "left") === leftward ? "end" : "start";
  const turn = leftward ? ' direction="rtl" unicode-bidi="isolate"' : "";
  const weight = mark.weight ? ` font-weight="${mark.weight}"` : "";
  return `<text x="${at(mark.x)}" y="${at(mark.y)}" text-anchor="${anchor}" dominant-baseline="central" fill="${mark.fill}" font-size="${mark.size}"${weight}${turn}>${escaped(mark.text)}</text>`;
}

/** A drawing that stands alone. */
export function svgOfScene({ width, height, paper, font, marks }: Scene, title: string): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${at(width)}" height="${at(height)}" viewBox="0 0 ${at(width)} ${at(height)}" role="img" font-family="${escaped(font)}">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="100%" height="100%" fill="${paper}"/>`,
    ...marks.map(svgMark),
    "</svg>",
    "",
  ].join("\n");
}

export function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) =>
      blob
        ? resolve(blob)
        : reject(
            new LookbackError("too-large", `a picture of ${canvas.width} × ${canvas.height} pixels cannot be made.`),
          ),
    ),
  );
}

/** The same as pixels, `density` per unit of the drawing. */
export function pngOfScene({ width, height, paper, font, marks }: Scene, density: number): Promise<Blob> {
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(width * density);
  canvas.height = Math.ceil(height * density);
  const context = canvas.getContext("2d")!;
  context.fillStyle = paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(density, density);
  drawMarks(context, marks, font);
  return pngOf(canvas);
}
