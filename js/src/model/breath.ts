/** Lets the page (or the server) do something else, now and then: work that goes on for long must not hold everything up. */
export class Breath {
  static readonly #MILLISECONDS = 12;
  #since = performance.now();

  /** Returns at once, unless it has been a while. */
  async take(): Promise<void> {
    if (performance.now() - this.#since < Breath.#MILLISECONDS) return;
    await pause();
    this.#since = performance.now();
  }
}

/** A turn of the event loop: timers and, on pages, input and drawing come before what follows. */
function pause(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: { yield?: () => Promise<void> } };
  if (scheduler?.yield) return scheduler.yield();
  const { setImmediate: soon = (done: () => void) => setTimeout(done) } = globalThis as {
    setImmediate?: (done: () => void) => unknown;
  };
  return new Promise((resolve) => {
    soon(resolve);
  });
}
