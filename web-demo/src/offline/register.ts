/** Keeps the built page for times without a network. While it is developed nothing is kept. */
export function keepForOffline(): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
  navigator.serviceWorker.register(new URL("sw.js", document.baseURI), { type: "module" }).catch((error: unknown) => {
    // Private windows and old browsers: the page works as long as there is a network.
    console.info("The page is not kept for offline use:", error);
  });
}
