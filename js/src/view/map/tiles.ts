/** A pyramid as coloured pictures of 256 × 256 cells, each painted when it is first seen. */
import type { Level, Part, Pyramid } from "./pyramid.js";
import type { Shades } from "./shades.js";
import type { Frame, View } from "./viewport.js";
import { levelFor } from "./viewport.js";

const SIDE = 256;
/** 256 kB each. */
const MOST_TILES = 160;
/** Time for new tiles in one frame, ms; a coarser picture stands in for those that have to wait. */
const PATIENCE = 7;

/** Rows and columns of a picture in a file. */
const MOST_EXPORTED = 2048;

type Picture = OffscreenCanvas | HTMLCanvasElement;
type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

interface Tile {
  readonly picture: Picture;
  readonly columns: number;
  readonly rows: number;
}

function newPicture(width: number, height: number): Picture {
  if (typeof OffscreenCanvas !== "undefined") return new OffscreenCanvas(width, height);
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return canvas;
}

/** The pixels of a tile on their way into its picture. */
let pixels: ImageData | null = null;

/** Colours a part of a matrix, with room for it in `image`, onto a picture. */
function paintOn(picture: Picture, shades: Shades, { data, columns }: Level, part: Part, image: ImageData): void {
  shades.paint(data, columns, part, new Uint32Array(image.data.buffer), image.width);
  (picture.getContext("2d") as Context).putImageData(image, 0, 0, 0, 0, part[3], part[2]);
}

/** As an address, for files that hold pictures. */
export const pictureOfWhole = (tiles: Tiles): string => tiles.whole(MOST_EXPORTED).toDataURL("image/png");

export class Tiles {
  readonly #pyramid: Pyramid;
  readonly #shades: Shades;
  readonly #tiles = new Map<string, Tile>();

  constructor(pyramid: Pyramid, shades: Shades) {
    this.#pyramid = pyramid;
    this.#shades = shades;
  }

  /**
   * Draws what is seen of the matrix at (left, top). `patient`: all of it, however long it takes. Returns whether it is complete: else draw
   * again in the next frame.
   */
  draw(
    context: Context,
    frame: Frame,
    view: View,
    [left, top]: readonly [number, number],
    density: number,
    patient: boolean,
  ): boolean {
    const level = levelFor(frame, view, density);
    const began = performance.now();
    context.save();
    context.beginPath();
    context.rect(left, top, frame.width, frame.height);
    context.clip();
    context.imageSmoothingEnabled = false;
    let complete = true;
    const { rows, columns } = this.#pyramid.sizeOf(level);
    const width = view.cell * 2 ** level;
    const height = width * frame.aspect;
    const range = (from: number, length: number, size: number, count: number) =>
      [
        Math.max(0, Math.floor(from / size / SIDE)),
        Math.min(Math.ceil(count / SIDE), Math.ceil((from + length) / size / SIDE)),
      ] as const;
    const [firstRow, lastRow] = range(view.y, frame.height, height, rows);
    const [firstColumn, lastColumn] = range(view.x, frame.width, width, columns);
    for (let row = firstRow; row < lastRow; row++)
      for (let column = firstColumn; column < lastColumn; column++) {
        const place = [left - view.x + column * SIDE * width, top - view.y + row * SIDE * height] as const;
        const wait = !patient && performance.now() - began > PATIENCE;
        const tile = this.#tile(level, row, column, !wait);
        if (tile) context.drawImage(tile.picture, ...place, tile.columns * width, tile.rows * height);
        else {
          complete = false;
          this.#standIn(context, level, row, column, place, width, height);
        }
      }
    context.restore();
    return complete;
  }

  /** The whole matrix, at the finest level that is no larger than `most` cells. */
  whole(most: number): HTMLCanvasElement {
    let level = 0;
    while (Math.max(...Object.values(this.#pyramid.sizeOf(level))) > most) level++;
    const { rows, columns } = this.#pyramid.sizeOf(level);
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows;
    paintOn(canvas, this.#shades, this.#pyramid.level(level), [0, 0, rows, columns], new ImageData(columns, rows));
    return canvas;
  }

  #tile(level: number, row: number, column: number, make: boolean): Tile | null {
    const name = `${level} ${row} ${column}`;
    const known = this.#tiles.get(name);
    if (known || !make) {
      if (known) {
        // The last to go is the one seen last.
        this.#tiles.delete(name);
        this.#tiles.set(name, known);
      }
      return known ?? null;
    }
    const whole = this.#pyramid.sizeOf(level);
    const rows = Math.min(SIDE, whole.rows - row * SIDE);
    const columns = Math.min(SIDE, whole.columns - column * SIDE);
    const picture = newPicture(columns, rows);
    const source = this.#pyramid.part(level, [row * SIDE, column * SIDE, rows, columns]);
    pixels ??= new ImageData(SIDE, SIDE);
    paintOn(picture, this.#shades, source.level, source.part, pixels);
    const tile = { picture, columns, rows };
    this.#tiles.set(name, tile);
    if (this.#tiles.size > MOST_TILES) this.#tiles.delete(this.#tiles.keys().next().value ?? "");
    return tile;
  }

  /** The same place out of a coarser tile that is there already. */
  #standIn(
    context: Context,
    level: number,
    row: number,
    column: number,
    [x, y]: readonly [number, number],
    width: number,
    height: number,
  ): void {
    for (let up = 1; up <= 8; up++) {
      const factor = 2 ** up;
      const tile = this.#tile(level + up, Math.floor(row / factor), Math.floor(column / factor), false);
      if (!tile) continue;
      const sx = ((column % factor) * SIDE) / factor;
      const sy = ((row % factor) * SIDE) / factor;
      const sw = Math.min(SIDE / factor, tile.columns - sx);
      const sh = Math.min(SIDE / factor, tile.rows - sy);
      context.drawImage(tile.picture, sx, sy, sw, sh, x, y, sw * factor * width, sh * factor * height);
      return;
    }
  }
}
