const MILLISECONDS = 12;
let last = 0;

/** Lets the page (or the server) do something else where it has been a while: long work must not hold everything up. */
export async function breathe(): Promise<void> {
  if (performance.now() - last < MILLISECONDS) return;
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
