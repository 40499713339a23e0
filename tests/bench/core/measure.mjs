/** Timing in turns: every round lets each contestant make one sample, so that whatever else the machine does meets all of them. */

/** @typedef {import("./types.ts").Settings} Settings */
/** @typedef {import("./types.ts").Samples} Samples */

/**
 * @typedef {object} Clock
 * @property {() => number} [cpu] milliseconds that the process has computed
 * @property {() => void} [collectGarbage]
 */

/** @param {boolean} quick @returns {Settings} */
export function settingsOf(quick) {
  return quick
    ? { rounds: 5, sampleMilliseconds: 3, warmUpMilliseconds: 150, warmUpCalls: 10, budgetMilliseconds: 400 }
    : { rounds: 31, sampleMilliseconds: 12, warmUpMilliseconds: 800, warmUpCalls: 60, budgetMilliseconds: 4000 };
}

/** Of a call that takes seconds, and of others. */
const FEWEST_SAMPLES = { long: 3, others: 9 };
/** A slow contestant is as warm as it gets after few calls: it spends its time in loops that were entered often. */
const FEWEST_WARM_UP_CALLS = 2;
const VERY_LONG_CALL = 2000;
const LONGEST_WARM_UP = 4;
const LONG_CALL = 300;

/**
 * @param {() => unknown} call
 * @param {number} times
 */
async function repeat(call, times) {
  for (let n = 0; n < times; ++n) {
    const result = call();
    // Waiting for what is there already would only add a turn of the queue.
    if (result instanceof Promise) await result;
  }
}

/**
 * Engines optimise what is called often, in the background: both calls and time are needed.
 * @param {() => unknown} call
 * @param {Settings} settings
 * @returns {Promise<number>} milliseconds of a call at the end
 */
export async function warmUp(call, { warmUpCalls, warmUpMilliseconds }) {
  const begin = performance.now();
  let calls = 0;
  let last = 0;
  for (;;) {
    const before = performance.now();
    const batch = calls < 4 ? 1 : Math.max(1, Math.min(64, Math.round(2 / Math.max(last, 1e-3))));
    await repeat(call, batch);
    const now = performance.now();
    last = (now - before) / batch;
    calls += batch;
    const spent = now - begin;
    if (calls >= warmUpCalls && spent >= warmUpMilliseconds) return last;
    const fewest = last > VERY_LONG_CALL ? 1 : FEWEST_WARM_UP_CALLS;
    if (calls >= fewest && spent >= LONGEST_WARM_UP * warmUpMilliseconds) return last;
  }
}

/**
 * @param {readonly (() => unknown)[]} calls
 * @param {Settings} settings
 * @param {Clock} [clock]
 * @returns {Promise<Samples[]>}
 */
export async function measureInTurns(calls, settings, clock = {}) {
  const { cpu, collectGarbage } = clock;
  const { rounds, sampleMilliseconds, budgetMilliseconds } = settings;
  const plans = [];
  for (const call of calls) {
    const estimate = await warmUp(call, settings);
    const times = Math.max(1, Math.ceil(sampleMilliseconds / Math.max(estimate, 1e-4)));
    // Each sample comes after a call that is not timed, unless a call is so long that its beginning does not matter.
    const sample = estimate * (times + (estimate < LONG_CALL ? 1 : 0));
    const fewest = estimate > VERY_LONG_CALL ? FEWEST_SAMPLES.long : FEWEST_SAMPLES.others;
    const samples = Math.min(rounds, Math.max(fewest, Math.floor(budgetMilliseconds / sample)));
    plans.push({
      call,
      estimate,
      times,
      samples,
      wall: /** @type {number[]} */ ([]),
      cpu: /** @type {number[]} */ ([]),
    });
  }
  for (let round = 0; round < rounds; ++round) {
    collectGarbage?.();
    for (let n = 0; n < plans.length; ++n) {
      // Another one begins in every round: nobody always runs after the same neighbour.
      const plan = /** @type {typeof plans[number]} */ (plans[(n + round) % plans.length]);
      if (!takesPart(round, plan.samples, rounds)) continue;
      // The caches hold the neighbour's data; in use they would hold one's own.
      if (plan.estimate < LONG_CALL) await repeat(plan.call, 1);
      const cpuBefore = cpu?.();
      const before = performance.now();
      await repeat(plan.call, plan.times);
      plan.wall.push((performance.now() - before) / plan.times);
      if (cpu && cpuBefore !== undefined) plan.cpu.push((cpu() - cpuBefore) / plan.times);
    }
  }
  return plans.map(({ wall, cpu, times }) => ({ wall, cpu, calls: times }));
}

/**
 * Spreads `samples` of them evenly over the rounds.
 * @param {number} round
 * @param {number} samples
 * @param {number} rounds
 */
export function takesPart(round, samples, rounds) {
  return Math.floor(((round + 1) * samples) / rounds) > Math.floor((round * samples) / rounds);
}
