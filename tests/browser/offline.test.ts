/** The built page as plain files below some folder: it is there soon, stays without a network, and makes itself fit for threads. */
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import type { BrowserContext, Page } from "playwright-core";
import sirv from "sirv";
import { findChromium, openStand, type Stand } from "./harness.js";

jest.setTimeout(120_000);

const chromium = findChromium();
if (!chromium)
  console.warn("SKIPPED: the browser tests need Chromium (apt-get install chromium, or LOOKBACK_CHROMIUM=path)");
const withBrowser = chromium ? describe : describe.skip;

const DIST = fileURLToPath(new URL("../../web-demo/dist", import.meta.url));
const FOLDER = "/some/folder";

/** Files and nothing else: no headers for isolation, no answer outside of the folder. */
async function plainServer(): Promise<HttpServer> {
  const files = sirv(DIST, { dev: true });
  const server = createServer((request, response) => {
    if (!request.url?.startsWith(`${FOLDER}/`)) {
      response.writeHead(404).end();
      return;
    }
    request.url = request.url.slice(FOLDER.length);
    files(request, response, () => {
      response.writeHead(404).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

withBrowser("the built page on a server of plain files", () => {
  let stand: Stand;
  let server: HttpServer;
  let address = "";

  beforeAll(async () => {
    stand = await openStand(chromium ?? "");
    server = await plainServer();
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}${FOLDER}/`;
  }, 180_000);

  afterAll(async () => {
    await stand?.close();
    server?.closeAllConnections();
    server?.close();
  });

  async function visiting(act: (page: Page, context: BrowserContext) => Promise<void>): Promise<void> {
    const context = await stand.browser.newContext({ locale: "en-US" });
    try {
      await act(await context.newPage(), context);
    } finally {
      await context.close();
    }
  }

  /** Until the worker has kept all files and answers for the page. */
  const kept = (page: Page) =>
    page.evaluate(async () => {
      await navigator.serviceWorker.ready;
      if (!navigator.serviceWorker.controller)
        await new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve));
    });

  test("the first view, with nothing kept before", () =>
    visiting(async (page) => {
      await page.goto(`${address}#lang=en`);
      await page.waitForSelector("#page[data-ready]");
      const [mark] = await page.evaluate(() =>
        performance.getEntriesByName("chapter-ready").map(({ startTime }) => startTime),
      );
      console.info(`first view, cold: ${Math.round(mark ?? Number.NaN)} ms`);
      expect(mark).toBeGreaterThan(0);
      expect(await page.locator("h1").textContent()).toBe("Attention that may only look back");
    }));

  test("after the first visit every chapter opens offline, and calculates", () =>
    visiting(async (page, context) => {
      await page.goto(`${address}#lang=en`);
      await page.waitForSelector("#page[data-ready]");
      await kept(page);
      await context.setOffline(true);
      server.closeAllConnections();
      await page.reload();
      await page.waitForSelector('#page[data-ready="article"]');
      await page.locator("#chapter-start .field input").fill("no network here");
      expect(await page.locator('#chapter-mask table[data-twin="a"] tbody tr').count()).toBe(3);
      for (const chapter of await page
        .locator(".chapters a")
        .evaluateAll((links) => [...new Set(links.map((link) => (link as HTMLElement).dataset.chapter ?? ""))])) {
        await page.locator(`.chapters a[data-chapter="${chapter}"]`).first().click();
        await page.waitForSelector(`#page[data-ready="${chapter}"]`);
        expect(await page.locator(".failure").count()).toBe(0);
      }
      await page.goto(`${address}#lang=zh&chapter=long-context&len=1024`);
      await page.waitForSelector(".long-context[data-done]", { timeout: 60_000 });
    }));

  test("without headers from the server there is one thread and a reason; the next visit is isolated by the service worker", () =>
    visiting(async (page) => {
      const line = page.locator(".run-engine .engine");
      await page.goto(`${address}#lang=en&chapter=long-context&len=1024`);
      await line.waitFor();
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(false);
      expect(await line.getAttribute("data-threads")).toBe("1");
      expect(await line.getAttribute("data-reason")).toContain("not cross-origin isolated");
      expect(await line.textContent()).toContain("1 thread · no more: not cross-origin isolated");
      await kept(page);
      await page.reload();
      await page.waitForSelector(".long-context[data-done]", { timeout: 60_000 });
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
      expect((await line.getAttribute("data-reason")) ?? "").not.toContain("not cross-origin isolated");
    }));
});
