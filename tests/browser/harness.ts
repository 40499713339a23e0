/** Chromium on the built demo. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { accessSync, constants, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const here = fileURLToPath(new URL(".", import.meta.url));
export const ARTIFACTS = join(here, "artifacts");

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** LOOKBACK_CHROMIUM, or the first known name on the PATH. */
export function findChromium(): string | null {
  const named = process.env.LOOKBACK_CHROMIUM;
  if (named) return executable(named) ? named : null;
  for (const folder of (process.env.PATH ?? "").split(delimiter))
    for (const name of NAMES) {
      const path = join(folder, name);
      if (folder && executable(path)) return path;
    }
  return null;
}

export interface Stand {
  readonly url: string;
  readonly browser: Browser;
  close(): Promise<void>;
}

async function firstLine(child: ChildProcessByStdio<Writable, Readable, Readable>): Promise<string> {
  let out = "";
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.on("exit", (code) => reject(new Error(`the demo could not be built or served (exit ${code}):\n${errors}`)));
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
      const line = out.split("\n").find((each) => each.startsWith("{"));
      if (line) resolve(line);
    });
  });
}

export interface Server {
  readonly url: string;
  close(): void;
}

/** Builds and serves the demo. Vite runs as a process of its own, outside of Jest's module system. */
export async function serveDemo(): Promise<Server> {
  const server = spawn(process.execPath, [join(here, "serve.mjs")], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, NODE_ENV: "production", NODE_OPTIONS: "" },
  });
  try {
    const { url } = JSON.parse(await firstLine(server)) as { url: string };
    return {
      url,
      close() {
        server.removeAllListeners("exit");
        server.stdin.end();
        server.kill();
      },
    };
  } catch (error) {
    server.kill();
    throw error;
  }
}

export async function openStand(chromiumPath: string): Promise<Stand> {
  mkdirSync(ARTIFACTS, { recursive: true });
  const server = await serveDemo();
  try {
    const browser = await chromium.launch({ executablePath: chromiumPath, headless: true, args: FLAGS });
    return {
      url: server.url,
      browser,
      async close() {
        await browser.close();
        server.close();
      },
    };
  } catch (error) {
    server.close();
    throw error;
  }
}

/** A page with the article ready, and everything it complained about. */
export interface Reader {
  readonly page: Page;
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

export async function openPage(stand: Stand, hash: string, options: BrowserContextOptions = {}): Promise<Reader> {
  const context = await stand.browser.newContext({
    viewport: { width: 1280, height: 900 },
    locale: "en-US",
    // Each page would fetch everything once more, to keep it.
    serviceWorkers: "block",
    ...options,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    const blocked = /^Service Worker registration blocked/.test(message.text());
    if ((message.type() === "error" || message.type() === "warning") && !blocked) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("requestfailed", (request) => complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  await page.goto(`${stand.url}${hash}`);
  await page.waitForSelector("#page[data-ready]");
  await page.evaluate(() => document.fonts.ready.then(() => undefined));
  return { page, complaints, close: () => context.close() };
}

const PATIENCE = 20_000;

/** A page draws when its turn comes: tries until `check` no longer throws. */
export async function eventually(check: () => Promise<void>): Promise<void> {
  for (const end = Date.now() + PATIENCE; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}
