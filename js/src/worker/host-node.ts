/** What a worker thread of Node.js runs. */
import { parentPort } from "node:worker_threads";
import { createLookback } from "../node.js";
import { serve } from "./host.js";

const port = parentPort;
if (port)
  serve(
    {
      post: (reply, buffers) => port.postMessage(reply, buffers),
      listen: (received) => port.on("message", received),
      // A message to oneself would be read before those that wait at another port.
      breathe: () => new Promise((resolve) => setImmediate(resolve)),
    },
    createLookback,
  );
