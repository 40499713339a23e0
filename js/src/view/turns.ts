/** Elements that are drawn at one moment share a task only while that is short: a page with many of them stays at hand. */

/** Milliseconds after which the next element waits for a task of its own. */
const SHARED = 8;

let spent = 0;
let next: Promise<void> | null = null;

/** A task of its own for what comes after it, in pages that nobody looks at, too: timers wait long there. */
function nextTask(): Promise<void> {
  next ??= new Promise<void>((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      next = null;
      spent = 0;
      resolve();
    };
    port2.postMessage(null);
  });
  return next;
}

/** Calls `draw` in this task, or in one of the next. */
export async function inTurn(draw: () => void): Promise<void> {
  while (spent > SHARED) await nextTask();
  const began = performance.now();
  void nextTask();
  try {
    draw();
  } finally {
    spent += performance.now() - began;
  }
}
