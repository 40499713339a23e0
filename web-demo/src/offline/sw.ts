/**
 * The service worker: everything that was built is kept at the first visit, so that the page works offline afterwards; and its answers carry
 * the headers that allow threads, which a server of plain files does not send.
 */
import { addPlugins, cleanupOutdatedCaches, type PrecacheEntry, precacheAndRoute } from "workbox-precaching";

/** What is used of a service worker's scope; the page's types know none. */
interface Scope {
  /** The list of files, put here when the page is built. */
  readonly __WB_MANIFEST: PrecacheEntry[];
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "activate", listener: (event: { waitUntil(work: Promise<void>): void }) => void): void;
}
declare const self: Scope;

function isolated(response: Response): Response {
  const headers = new Headers(response.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

addPlugins([{ handlerWillRespond: async ({ response }) => isolated(response) }]);
cleanupOutdatedCaches();
precacheAndRoute(self.__WB_MANIFEST);

// The first page need not be loaded again to work offline. A newer version waits until no page needs the old one's files.
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
