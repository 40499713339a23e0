/** Chromium, by playwright-core. */
import { chromium, type Page } from "playwright-core";
import { findTools } from "../../bindings/toolchain/find.mjs";
import { type Engine, type Hands, type InPage, type Launcher, type Size, Tab } from "./driver.js";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];

function hands(page: Page): Hands {
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("requestfailed", (request) => complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  return {
    goto: async (url) => void (await page.goto(url)),
    evaluate: <A extends unknown[], R>(inPage: InPage<A, R>, args: A) =>
      page.evaluate(
        // The page's policy may forbid eval, but not what the protocol evaluates.
        `(${inPage})(...${JSON.stringify(args)})`,
      ) as Promise<R>,
    move: (x, y) => page.mouse.move(x, y),
    click: (x, y, clickCount) => page.mouse.click(x, y, { clickCount }),
    press: (key) => page.keyboard.press(key),
    resize: (size) => page.setViewportSize(size),
    screenshot: async (path) => void (await page.screenshot({ path })),
    complaints: async () => [...complaints],
    close: () => page.context().close(),
  };
}

export const chromiumLauncher: Launcher = {
  name: "Chromium",
  missing: () => (findTools().chromium ? null : "Chromium (apt-get install chromium, or LOOKBACK_CHROMIUM=path)"),
  async launch(): Promise<Engine> {
    const browser = await chromium.launch({ executablePath: findTools().chromium, headless: true, args: FLAGS });
    return {
      name: "Chromium",
      open: async (viewport: Size) =>
        new Tab(hands(await (await browser.newContext({ viewport, locale: "en-US" })).newPage())),
      close: () => browser.close(),
    };
  },
};
