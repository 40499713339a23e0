const MILLISECONDS = 12;
let last = 0;

/** Lets the page (or the server) do something else where it has been a while: long work must not hold everything up. */
export function breathe(): Promise<void> | undefined {
  // Most steps are too short for a pause: a promise for each would cost more than to look at the clock.
  return performance.now() - last < MILLISECONDS ? undefined : pause();
}

async function pause(): Promise<void> {
  await turn();
  last = performance.now();
}

/** A turn of the event loop: timers and, on pages, input and drawing come before what follows. */
function turn(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: { yield?: () => Promise<void> } };
  if (scheduler?.yield) return scheduler.yield();
  const { setImmediate: soon = setTimeout } = globalThis as { setImmediate?: (done: () => void) => unknown };
  return new Promise((resolve) => {
    soon(resolve);
  });
}
