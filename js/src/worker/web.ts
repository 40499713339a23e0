import { connect } from "./client.js";
import type { Channel } from "./link.js";
import type { WorkerLookback, WorkerOptions } from "./types.js";
import type { Reply } from "./wire.js";

export type * from "./types.js";

/** Starts a worker with an instance of its own; what `createLookback` takes goes to it. */
export async function createLookbackWorker(options?: WorkerOptions): Promise<WorkerLookback> {
  // A worker's own base is its script.
  return connect(
    channel,
    options,
    (url) => new URL(url, globalThis.document?.baseURI ?? globalThis.location.href).href,
  );
}

function channel(): Channel {
  // Written out like this, bundlers find the file.
  const worker = new Worker(new URL("./host-web.js", import.meta.url), { type: "module" });
  return {
    post: (message, buffers) => worker.postMessage(message, buffers),
    listen(received, failed) {
      worker.onmessage = (event: MessageEvent<Reply>) => received(event.data);
      worker.onmessageerror = () => failed("what it sent cannot be read");
      worker.onerror = (event) => failed(event.message ?? "its script cannot be loaded");
    },
    busy: () => {}, // a page lives on without asking
    end: () => worker.terminate(),
  };
}
