import { Worker } from "node:worker_threads";
import { connect } from "./client.js";
import type { Channel } from "./link.js";
import type { WorkerLookback, WorkerOptions } from "./types.js";
import type { Reply } from "./wire.js";

export type * from "./types.js";

/** Starts a worker with an instance of its own; what `createLookback` takes goes to it. */
export async function createLookbackWorker(options?: WorkerOptions): Promise<WorkerLookback> {
  // A path is one here and in the worker; so is a URL.
  return connect(channel, options, String);
}

function channel(): Channel {
  // None of the process's own flags: --input-type, say, is for what it was started with.
  const worker = new Worker(new URL("./host-node.js", import.meta.url), { execArgv: [] });
  return {
    post: (message, buffers) => worker.postMessage(message, buffers),
    listen(received, failed) {
      worker.on("message", (reply: Reply) => received(reply));
      worker.on("messageerror", (error) => failed(error.message));
      worker.on("error", (error) => failed(error instanceof Error ? error.message : String(error)));
      worker.on("exit", (code) => failed(`its thread has stopped, with code ${code}`));
    },
    busy: (waiting) => (waiting ? worker.ref() : worker.unref()),
    end: () => void worker.terminate(),
  };
}
