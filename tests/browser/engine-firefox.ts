/** Firefox, by puppeteer-core over WebDriver BiDi. */
import puppeteer, { type Browser, type KeyInput, type Page } from "puppeteer-core";
import { findTools } from "../../bindings/toolchain/find.mjs";
import { type Engine, type Hands, type InPage, type Launcher, type Size, Tab } from "./driver.js";

function hands(page: Page): Hands {
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warn") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("requestfailed", (request) => complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  return {
    goto: async (url) => void (await page.goto(url)),
    evaluate: <A extends unknown[], R>(inPage: InPage<A, R>, args: A) =>
      page.evaluate(`(${inPage})(...${JSON.stringify(args)})`) as Promise<R>,
    move: (x, y) => page.mouse.move(x, y),
    click: (x, y, count) => page.mouse.click(x, y, { count }),
    press: (key) => page.keyboard.press(key as KeyInput),
    resize: (size) => page.setViewport(size),
    screenshot: async (path) => void (await page.screenshot({ path: path as `${string}.png` })),
    complaints: async () => [...complaints],
    close: () => page.close(),
  };
}

async function open(browser: Browser, size: Size): Promise<Tab> {
  const page = await browser.newPage();
  await page.setViewport(size);
  return new Tab(hands(page));
}

export const firefoxLauncher: Launcher = {
  name: "Firefox",
  missing: () => (findTools().firefox ? null : "Firefox (apt-get install firefox-esr, or LOOKBACK_FIREFOX=path)"),
  async launch(): Promise<Engine> {
    const browser = await puppeteer.launch({
      browser: "firefox",
      executablePath: findTools().firefox,
      headless: true,
      extraPrefsFirefox: { "intl.accept_languages": "en-US" },
    });
    return {
      name: "Firefox",
      open: (size) => open(browser, size),
      close: () => browser.close(),
    };
  },
};
