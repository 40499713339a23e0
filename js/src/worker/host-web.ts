/** What a browser's worker runs. */
import { createLookback } from "../web.js";
import { serve } from "./host.js";
import type { Request } from "./wire.js";

/** The worker's own scope, of which the page's types know nothing. */
interface Scope {
  postMessage(message: unknown, transfer: Transferable[]): void;
  onmessage: ((event: MessageEvent<Request>) => void) | null;
}
const scope = globalThis as unknown as Scope;
// A message to oneself comes after those that have arrived already; a timer would be put off by milliseconds.
const { port1, port2 } = new MessageChannel();

serve(
  {
    post: (reply, buffers) => scope.postMessage(reply, buffers),
    listen(received) {
      scope.onmessage = (event) => received(event.data);
    },
    breathe: () =>
      new Promise((resolve) => {
        port1.onmessage = () => resolve();
        port2.postMessage(undefined);
      }),
  },
  createLookback,
);
