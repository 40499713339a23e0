/** WebKitGTK's MiniBrowser, by its WebDriver, on an X server without a screen. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { Readable } from "node:stream";
import { Builder, Capabilities, Key, Origin, type WebDriver } from "selenium-webdriver";
import { findTools } from "../../bindings/toolchain/find.mjs";
import { type Engine, type Hands, type InPage, type Launcher, type Size, Tab } from "./driver.js";

const PATIENCE = 30_000;
/** Milliseconds after which a click begins a new count. */
const BETWEEN_CLICKS = 600;
/** Where a scroll bar comes or goes, sizes change within a frame; they are told in the next one, and WebKit alone makes an event of it. */
const DEFERRED_SIZES = "ResizeObserver loop completed with undelivered notifications.";

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (!address || typeof address === "string") throw new Error("the system gives no port");
  return address.port;
}

/** The server chooses its own number and writes it. */
async function startDisplay(program: string): Promise<{ server: ChildProcess; display: string }> {
  const server = spawn(program, ["-displayfd", "3", "-screen", "0", "1920x1200x24", "-nolisten", "tcp"], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const number = server.stdio[3] as Readable;
  const failed = once(server, "exit").then(([code]) => {
    throw new Error(`Xvfb ended with ${code}`);
  });
  const [written] = (await Promise.race([once(number, "data"), failed])) as [Buffer];
  return { server, display: `:${written.toString().trim()}` };
}

async function startDriver(program: string, display: string): Promise<{ server: ChildProcess; url: string }> {
  const port = await freePort();
  const env = {
    ...process.env,
    DISPLAY: display,
    LANG: "en_US.UTF-8",
    GDK_BACKEND: "x11",
    // Its sandbox needs rights that containers do not give; what it opens is ours.
    WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1",
  };
  const server = spawn(program, [`--port=${port}`], { stdio: "ignore", env });
  const url = `http://127.0.0.1:${port}`;
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    if (server.exitCode !== null) throw new Error(`WebKitWebDriver ended with ${server.exitCode}`);
    if (await fetch(`${url}/status`).then(Boolean, () => false)) return { server, url };
    if (Date.now() > deadline) throw new Error("WebKitWebDriver does not answer");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** `ArrowDown` is `ARROW_DOWN` there. */
function keyOf(name: string): string {
  if (name.length === 1) return name;
  const key = Key[name.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase() as keyof typeof Key];
  if (typeof key !== "string") throw new Error(`WebDriver has no key ${name}`);
  return key;
}

async function resize(driver: WebDriver, { width, height }: Size): Promise<void> {
  const inner = () => driver.executeScript<[number, number]>("return [innerWidth, innerHeight]");
  const window = driver.manage().window();
  for (let tries = 0; tries < 3; tries++) {
    const outer = await window.getRect();
    const [innerWidth, innerHeight] = await inner();
    if (innerWidth === width && innerHeight === height) return;
    // A width below what its tool bar takes is not given.
    await window.setRect({
      ...outer,
      width: outer.width + width - innerWidth,
      height: outer.height + height - innerHeight,
    });
  }
}

function hands(driver: WebDriver): Hands {
  return {
    async goto(url) {
      // This protocol has no events: the page collects its complaints itself (see serve.mjs).
      const address = new URL(url);
      address.searchParams.set("recorded", "");
      await driver.get(address.href);
    },
    evaluate: <A extends unknown[], R>(inPage: InPage<A, R>, args: A) =>
      driver.executeScript<R>(`return (${inPage})(...arguments)`, ...args),
    move: (x, y) =>
      driver
        .actions()
        .move({ x: Math.round(x), y: Math.round(y), origin: Origin.VIEWPORT })
        .perform(),
    async click(x, y, count) {
      // A click soon after others at one place would be their third or fourth.
      let actions = driver.actions().pause(BETWEEN_CLICKS);
      actions = actions.move({ x: Math.round(x), y: Math.round(y), origin: Origin.VIEWPORT });
      for (let click = 0; click < count; click++) actions = actions.press().release();
      await actions.perform();
    },
    press: (key) => driver.actions().sendKeys(keyOf(key)).perform(),
    resize: (size) => resize(driver, size),
    screenshot: async (path) => writeFileSync(path, await driver.takeScreenshot(), "base64"),
    complaints: async () => {
      const complaints = await driver.executeScript<string[]>(
        "if (!globalThis.complaints) throw new Error('this page records no complaints'); return globalThis.complaints",
      );
      return complaints.filter((complaint) => complaint !== DEFERRED_SIZES);
    },
    close: () => driver.get("about:blank"),
  };
}

async function launch(): Promise<Engine> {
  const { webKitDriver = "", miniBrowser = "", xvfb = "" } = findTools();
  const started: ChildProcess[] = [];
  const stop = () => {
    for (const server of started.reverse()) server.kill();
  };
  try {
    const { server: screen, display } = await startDisplay(xvfb);
    started.push(screen);
    const { server, url } = await startDriver(webKitDriver, display);
    started.push(server);
    const wanted = new Capabilities({
      browserName: "MiniBrowser",
      "webkitgtk:browserOptions": { binary: miniBrowser, args: ["--automation"] },
    });
    const driver = await new Builder().usingServer(url).disableEnvironmentOverrides().withCapabilities(wanted).build();
    return {
      name: "WebKitGTK",
      async open(size) {
        await resize(driver, size);
        return new Tab(hands(driver));
      },
      async close() {
        await driver.quit().catch(() => {});
        stop();
      },
    };
  } catch (error) {
    stop();
    throw error;
  }
}

export const webKitLauncher: Launcher = {
  name: "WebKitGTK",
  missing() {
    const { webKitDriver, miniBrowser, xvfb } = findTools();
    return webKitDriver && miniBrowser && xvfb ? null : "WebKitGTK (apt-get install webkit2gtk-driver xvfb)";
  },
  launch,
};
