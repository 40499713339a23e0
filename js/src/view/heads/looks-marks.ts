/** The lines from queries to keys, a colour for each head, and beside each key how strongly each head looks at it. */
import type { Attention } from "../data.js";
import { largestOf } from "../looks.js";
import type { CurveMark, Mark } from "../marks.js";

/** Height of a token's row. */
export const ROW = 24;
/** Fainter lines are not seen. */
const FAINTEST = 0.02;
/** Of more lines only the strongest are drawn: the others are lost between them, and take the time of many frames. */
const MOST_LINES = { chosen: 800, inSight: 200 };

export interface LooksPicture {
  readonly attention: Attention;
  /** [Lq, Lk] of each head that is on, and its colour. */
  readonly heads: readonly { readonly matrix: Float32Array; readonly colour: string }[];
  /** Queries whose lines are drawn. */
  readonly queries: readonly number[];
  /** Whether a reader chose them; else they are merely in sight, and their lines stand back. */
  readonly chosen: boolean;
  /** Weights are shares of 1, other numbers of the largest. */
  readonly ofOne: boolean;
}

export interface LooksPlaces {
  /** Where lines begin and end. */
  readonly left: number;
  readonly right: number;
  /** The first pixel and the number of them that are seen. */
  readonly top: number;
  readonly height: number;
  /** Rows between the first key and the first query. */
  readonly offset: number;
  /** Width of one head's mark beside a key. */
  readonly strip: number;
}

const largest = new WeakMap<Float32Array, number>();

function extentOf(matrix: Float32Array): number {
  const known = largest.get(matrix);
  if (known !== undefined) return known;
  const most = largestOf(matrix) || 1;
  largest.set(matrix, most);
  return most;
}

const middle = (row: number, top: number): number => (row + 0.5) * ROW - top;

/** How strong a look is, from 0 to 1. */
function shareOf(value: number, extent: number): number {
  return Number.isFinite(value) ? Math.min(1, Math.abs(value) / extent) : 0;
}

export function looksMarks(picture: LooksPicture, places: LooksPlaces): Mark[] {
  return [...lines(picture, places), ...(picture.chosen ? strips(picture, places) : [])];
}

function lines({ attention, heads, queries, chosen, ofOne }: LooksPicture, places: LooksPlaces): Mark[] {
  const { left, right, top, height, offset } = places;
  const marks: CurveMark[] = [];
  const bend = (right - left) * 0.45;
  // Many heads on one line are kept apart, and each stands back.
  const weakened = (chosen ? 1 : 0.55) / Math.sqrt(heads.length);
  heads.forEach(({ matrix, colour }, index) => {
    const extent = ofOne ? 1 : extentOf(matrix);
    const shift = heads.length === 1 ? 0 : (index / (heads.length - 1) - 0.5) * Math.min(10, heads.length);
    for (const query of queries) {
      const y0 = middle(query + offset, top);
      for (let key = 0; key < attention.keyLength; key++) {
        const opacity = shareOf(matrix[query * attention.keyLength + key]!, extent) * weakened;
        const y3 = middle(key, top) + shift;
        if (opacity < FAINTEST || (y0 < -ROW && y3 < -ROW) || (y0 > height + ROW && y3 > height + ROW)) continue;
        marks.push({
          is: "curve",
          points: [left, y0, left + bend, y0, right - bend, y3, right, y3],
          stroke: colour,
          width: 1.75,
          opacity,
        });
      }
    }
  });
  const most = chosen ? MOST_LINES.chosen : MOST_LINES.inSight;
  if (marks.length <= most) return marks;
  const least = Float64Array.from(marks, ({ opacity }) => opacity).sort()[marks.length - most]!;
  // Of equal ones, as many as there is room for, evenly spread.
  const equals = marks.filter(({ opacity }) => opacity === least);
  const room = most - marks.filter(({ opacity }) => opacity > least).length;
  const kept = new Set(Array.from({ length: room }, (_, i) => equals[Math.floor((i * equals.length) / room)]));
  return marks.filter((mark) => mark.opacity > least || kept.has(mark));
}

function strips({ attention, heads, queries, ofOne }: LooksPicture, places: LooksPlaces): Mark[] {
  const { right, top, height, strip } = places;
  const first = Math.max(0, Math.floor(top / ROW));
  const last = Math.min(attention.keyLength, Math.ceil((top + height) / ROW));
  return heads.flatMap(({ matrix, colour }, index): Mark[] => {
    const extent = ofOne ? 1 : extentOf(matrix);
    const marks: Mark[] = [];
    for (let key = first; key < last; key++) {
      let sum = 0;
      for (const query of queries) sum += shareOf(matrix[query * attention.keyLength + key]!, extent);
      if (sum > 0)
        marks.push({
          is: "rect",
          x: right + index * strip,
          y: key * ROW - top + 2,
          width: Math.max(1, strip - 1),
          height: ROW - 4,
          fill: colour,
          opacity: Math.min(1, sum),
        });
    }
    return marks;
  });
}
