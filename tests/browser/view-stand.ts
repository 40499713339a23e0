/** Pages around the elements of lookback/view in Chromium: each test writes the body it needs. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { rgb } from "d3-color";
import { interpolateViridis } from "d3-scale-chromatic";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { root } from "../../bindings/toolchain/paths.mjs";

const TYPES: Record<string, string> = {
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
  ".json": "application/json",
};

/** No inline styles, no eval, nothing from elsewhere: the elements must do under it, too. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "connect-src 'self'",
].join("; ");

export interface ViewPage {
  readonly page: Page;
  /** Errors and warnings of the console, uncaught errors. */
  readonly complaints: string[];
}

export class ViewStand {
  readonly #browser: Browser;
  readonly #close: () => void;
  readonly #files: Map<string, string>;
  readonly url: string;

  private constructor(browser: Browser, url: string, files: Map<string, string>, close: () => void) {
    this.#browser = browser;
    this.#close = close;
    this.#files = files;
    this.url = url;
  }

  static async open(executablePath: string): Promise<ViewStand> {
    const files = new Map<string, string>();
    const server = createServer((request, response) => {
      const { pathname } = new URL(request.url ?? "/", "http://localhost");
      const own = files.get(pathname);
      if (pathname === "/favicon.ico") {
        response.writeHead(204).end();
        return;
      }
      response.setHeader("content-security-policy", POLICY);
      if (own !== undefined) {
        const html = pathname.endsWith(".html") || own.startsWith("<!doctype");
        response.setHeader("content-type", html ? "text/html; charset=utf-8" : "application/json").end(own);
        return;
      }
      try {
        const path = normalize(pathname).replace(/^\/package\//, "/dist/");
        const bytes = readFileSync(join(root, path));
        response.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream").end(bytes);
      } catch {
        response.writeHead(404).end("not here");
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the server has no port");
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
    return new ViewStand(browser, `http://127.0.0.1:${address.port}`, files, () => server.close());
  }

  /** A file that pages can fetch. */
  serve(path: string, text: string): void {
    this.#files.set(path, text);
  }

  /** A page with this body (or, where it is a whole document, this page), the elements known. */
  async read(body: string, act: (view: ViewPage) => Promise<void>, options: BrowserContextOptions = {}): Promise<void> {
    const whole = body.startsWith("<!doctype");
    const page = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>View</title><link rel="icon" href="data:,"><script type="module" src="/package/view/view.js"></script></head><body><main><h1>View</h1>${body}</main></body></html>`;
    this.serve("/page.html", whole ? body : page);
    const context = await this.#browser.newContext({
      viewport: { width: 900, height: 900 },
      deviceScaleFactor: 2,
      ...options,
    });
    try {
      const tab = await context.newPage();
      const complaints: string[] = [];
      tab.on("console", (message) => {
        // The tests do read pixels back, again and again.
        const advice = message.text().includes("willReadFrequently");
        if ((message.type() === "error" || message.type() === "warning") && !advice) complaints.push(message.text());
      });
      tab.on("pageerror", (error) => complaints.push(String(error)));
      await tab.goto(`${this.url}/page.html`);
      await act({ page: tab, complaints });
    } finally {
      await context.close();
    }
  }

  async close(): Promise<void> {
    await this.#browser.close();
    this.#close();
  }
}

/** A causal head whose weights are plain to compute: row i gives key j the share (j + 1) / (1 + 2 + … + i + 1). */
export function causalHead(length: number): number[][] {
  return Array.from({ length }, (_, i) =>
    Array.from({ length }, (_, j) => (j <= i ? (2 * (j + 1)) / ((i + 1) * (i + 2)) : 0)),
  );
}

export const TOKENS = ["<s>", "▁We", "▁drink", "▁some", "▁tea"];

/** Red, green and blue of a share of the scale. */
export function viridis(share: number): number[] {
  const { r, g, b } = rgb(interpolateViridis(share));
  return [r, g, b];
}

/** The largest difference of two colours' parts. */
export const far = (a: readonly number[], b: readonly number[]): number =>
  Math.max(...b.map((value, i) => Math.abs(value - a[i]!)));
