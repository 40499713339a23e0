import { refuse } from "./errors.js";
import { checkBytes, type Job, type Output } from "./heap.js";
import { flag, later, positiveInteger, readOptions } from "./options.js";
import type { Geometry } from "./shapes.js";
import { product, tensorOf } from "./tensors.js";
import type { Summary } from "./types.js";

const REQUEST = { topK: positiveInteger, entropy: flag, distance: flag, map: later<unknown>() };

export const readSummary = (value: unknown, where: string) => readOptions(value, REQUEST, where);
type Request = ReturnType<typeof readSummary>;

/** Where the core writes the figures of the rows. */
export interface SummaryPlan {
  readonly topK: number;
  readonly indices: Output<Int32Array> | undefined;
  readonly weights: Output | undefined;
  readonly entropy: Output | undefined;
  readonly distance: Output | undefined;
  readonly map: Output | undefined;
  readonly mapDims: readonly number[];
  summary(): Summary;
}

/** Call it after every job.input(). */
export function planSummary(job: Job, request: Request | undefined, geometry: Geometry): SummaryPlan | undefined {
  if (request === undefined) return undefined;
  const { batch, heads, queryLength } = geometry;
  const { topK = 0, entropy, distance } = request;
  const rows = [batch, heads, queryLength];
  const topDims = [...rows, topK];
  const cells = request.map === undefined ? undefined : readCells(request.map, geometry);
  const mapDims = cells && [batch, heads, ...cells];
  const room = (dims: readonly number[] | false | undefined, name: string): Output | undefined => {
    if (!dims) return undefined;
    checkBytes(product(dims) * 4, `summary.${name} of dims [${dims.join(", ")}]`);
    return job.output(product(dims));
  };
  const plan = {
    weights: room(topK > 0 && topDims, "topK"),
    entropy: room(entropy && rows, "entropy"),
    distance: room(distance && rows, "distance"),
    map: room(mapDims, "map"),
  };
  const indices = plan.weights && job.fresh(product(topDims), Int32Array);
  const tensor = (output: Output, dims: readonly number[] = rows) => tensorOf(output.values!, dims);
  return {
    ...plan,
    topK,
    indices,
    mapDims: cells ?? [0, 0],
    summary: () => ({
      ...(indices && {
        topK: { indices: { data: indices.values!, dims: topDims }, weights: tensor(plan.weights!, topDims) },
      }),
      ...(plan.entropy && { entropy: tensor(plan.entropy) }),
      ...(plan.distance && { distance: tensor(plan.distance) }),
      ...(plan.map && { map: tensor(plan.map, mapDims) }),
    }),
  };
}

function readCells(value: unknown, { queryLength, keyLength }: Geometry): readonly [number, number] {
  const cells = Array.isArray(value) ? value : [];
  const fits = (n: unknown, most: number) => Number.isInteger(n) && (n as number) >= 1 && (n as number) <= most;
  if (cells.length !== 2 || !fits(cells[0], queryLength) || !fits(cells[1], keyLength)) {
    const most = `[R, C], 1 ≤ R ≤ ${queryLength} (the queries) and 1 ≤ C ≤ ${keyLength} (the keys)`;
    refuse("bad-option", "summary.map", most, value);
  }
  return [cells[0], cells[1]];
}
