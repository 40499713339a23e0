/** One case: contestants are made ready, their results compared, and those that are right are timed in turns. */
import { inputsOf } from "./inputs.mjs";
import { measureInTurns } from "./measure.mjs";
import { differenceOf, expectedOf } from "./reference.mjs";
import { workOf } from "./workloads.mjs";

/** @typedef {import("./types.ts").Workload} Workload */
/** @typedef {import("./types.ts").Contestant} Contestant */
/** @typedef {import("./types.ts").Environment} Environment */
/** @typedef {import("./types.ts").Session} Session */
/** @typedef {import("./types.ts").Prepared} Prepared */
/** @typedef {import("./types.ts").RawRow} RawRow */

/** Says that a contestant cannot take part, as opposed to a mistake of ours. Its message is the row's reason. */
export class NotAvailable extends Error {}

/**
 * @param {readonly Workload[]} workloads
 * @param {readonly Contestant[]} contestants
 * @param {Environment} env
 * @param {import("./types.ts").Settings} settings
 * @param {ReadonlyMap<string, string>} [excluded] contestants that are known to fail, and why
 * @returns {Promise<RawRow[]>}
 */
export async function runCase(workloads, contestants, env, settings, excluded = new Map()) {
  const sessions = new Sessions(env, excluded);
  /** @type {{ row: RawRow, prepared?: Prepared }[]} */
  const entries = [];
  for (const workload of workloads) {
    const inputs = inputsOf(workload);
    const expected = expectedOf(workload, inputs);
    for (const contestant of contestants.filter((one) => takesPart(one, workload))) {
      const name = { workload: workload.id, contestant: contestant.id };
      /** @type {Prepared | undefined} */
      let prepared;
      try {
        prepared = await (await sessions.of(contestant)).prepare(workload, inputs);
        const checked = await check(prepared, expected);
        const work = prepared.work ?? workOf(workload);
        entries.push({ row: { ...name, ...checked, work }, prepared });
      } catch (error) {
        prepared?.dispose?.();
        entries.push({ row: { ...name, status: "not available", reason: reasonOf(error) } });
      }
    }
  }
  const timed = entries.filter(({ row }) => row.status === "measured");
  env.entering("");
  const samples = await measureInTurns(
    timed.map(
      ({ prepared }) =>
        () =>
          prepared?.call(),
    ),
    settings,
    env,
  );
  timed.forEach((entry, n) => {
    entry.row = { ...entry.row, samples: /** @type {import("./types.ts").Samples} */ (samples[n]) };
  });
  for (const { prepared } of entries) prepared?.dispose?.();
  sessions.close();
  return entries.map(({ row }) => row);
}

/**
 * @param {Contestant} contestant
 * @param {Workload} workload
 */
function takesPart(contestant, workload) {
  if (contestant.kinds && !contestant.kinds.includes(workload.kind)) return false;
  const machine = workload.kind === "multiply-add" || workload.kind === "read";
  if (machine) return contestant.role === "ceiling";
  if (workload.contestants === "one thread" && (contestant.threads ?? 1) > 1) return false;
  return contestant.role !== "peer" || workload.contestants === undefined;
}

/**
 * @param {Prepared} prepared
 * @param {import("./reference.mjs").Expected | undefined} expected
 * @returns {Promise<Pick<RawRow, "status" | "reason" | "difference" | "tolerance">>}
 */
async function check(prepared, expected) {
  const result = await prepared.call();
  if (!expected || !prepared.read) return { status: "measured" };
  const difference = differenceOf(prepared.read(result), expected);
  const { tolerance } = expected;
  if (difference <= tolerance) return { status: "measured", difference, tolerance };
  const reason = Number.isFinite(difference) ? "differs from the reference" : "has another shape, or NaN";
  return { status: "wrong", reason, difference, tolerance };
}

/** Opened once for all workloads of a case. */
class Sessions {
  /** @type {Map<string, Promise<Session>>} */
  #open = new Map();
  #env;
  #excluded;

  /**
   * @param {Environment} env
   * @param {ReadonlyMap<string, string>} excluded
   */
  constructor(env, excluded) {
    this.#env = env;
    this.#excluded = excluded;
  }

  /** @param {Contestant} contestant */
  of(contestant) {
    const known = this.#excluded.get(contestant.id);
    if (known !== undefined) throw new NotAvailable(known);
    this.#env.entering(contestant.id);
    const found = this.#open.get(contestant.id);
    if (found) return found;
    const opened = contestant.load().then((module) => module.open(contestant, this.#env));
    this.#open.set(contestant.id, opened);
    return opened;
  }

  close() {
    for (const session of this.#open.values())
      session.then(
        (one) => one.close?.(),
        () => {},
      );
  }
}

/** @param {unknown} error */
export function reasonOf(error) {
  const message = error instanceof Error ? error.message || error.name : String(error);
  const line = message.split("\n")[0]?.trim() || "no reason given";
  return line.length > 160 ? `${line.slice(0, 159)}…` : line;
}
