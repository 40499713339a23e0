/** One way to drive every browser, so that a test is written once: what an engine's own protocol has to offer, and what is made of it. */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { buildFolder } from "../../bindings/toolchain/paths.mjs";

/** Screenshots of all engines, kept for people to look at. */
export const SCREENSHOTS = join(buildFolder, "browser");

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** A function that runs inside the page: what it uses and what it returns travels as JSON, so without NaN and infinities. */
export type InPage<A extends unknown[], R> = (...args: A) => R | Promise<R>;

/** What a browser's protocol does. */
export interface Hands {
  goto(url: string): Promise<void>;
  evaluate<A extends unknown[], R>(inPage: InPage<A, R>, args: A): Promise<R>;
  move(x: number, y: number): Promise<void>;
  click(x: number, y: number, count: number): Promise<void>;
  /** A key by its `KeyboardEvent.key`. */
  press(key: string): Promise<void>;
  resize(size: Size): Promise<void>;
  screenshot(path: string): Promise<void>;
  /** Errors and warnings of the console, uncaught errors, and failed requests. */
  complaints(): Promise<string[]>;
  close(): Promise<void>;
}

export interface Engine {
  readonly name: string;
  open(size: Size): Promise<Tab>;
  close(): Promise<void>;
}

export interface Launcher {
  readonly name: string;
  /** What is missing of it here; null where it can be launched. */
  missing(): string | null;
  launch(): Promise<Engine>;
}

const PATIENCE = 15_000;
const PAUSE = 25;

/** A page as its reader has it: eyes on elements, hands on pointer and keys. */
export class Tab {
  readonly #hands: Hands;

  constructor(hands: Hands) {
    this.#hands = hands;
  }

  goto(url: string): Promise<void> {
    return this.#hands.goto(url);
  }

  evaluate<A extends unknown[], R>(inPage: InPage<A, R>, ...args: A): Promise<R> {
    return this.#hands.evaluate(inPage, args);
  }

  /** Until the page says yes. */
  async wait<A extends unknown[]>(condition: InPage<A, boolean>, ...args: A): Promise<void> {
    const deadline = Date.now() + PATIENCE;
    while (!(await this.evaluate(condition, ...args))) {
      if (Date.now() > deadline)
        throw new Error(
          `waited in vain for ${condition} of ${JSON.stringify(args)}; the page says: ${await this.complaints()}`,
        );
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  /** The pointer goes over a place of an element, its middle by default. */
  async hover(selector: string, at?: readonly [x: number, y: number]): Promise<void> {
    const [x, y] = await this.#place(selector, at);
    await this.#hands.move(x, y);
  }

  async click(selector: string, at?: readonly [x: number, y: number], count = 1): Promise<void> {
    const [x, y] = await this.#place(selector, at);
    await this.#hands.click(x, y, count);
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.#hands.press(key);
  }

  resize(size: Size): Promise<void> {
    return this.#hands.resize(size);
  }

  /** Into the folder of screenshots. */
  async screenshot(name: string): Promise<void> {
    const path = join(SCREENSHOTS, `${name}.png`);
    mkdirSync(dirname(path), { recursive: true });
    await this.#hands.screenshot(path);
  }

  complaints(): Promise<string[]> {
    return this.#hands.complaints();
  }

  close(): Promise<void> {
    return this.#hands.close();
  }

  /** Selectors joined by `>>>` go through shadow roots. */
  #place(selector: string, at?: readonly [number, number]): Promise<[number, number]> {
    return this.evaluate(
      (path, dx, dy) => {
        let scope: ParentNode | null | undefined = document;
        let element: Element | null | undefined;
        for (const part of path.split(">>>")) {
          element = scope?.querySelector(part);
          scope = element?.shadowRoot;
        }
        if (!element) throw new Error(`the page has no ${path}`);
        element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
        const { left, top, width, height } = element.getBoundingClientRect();
        return [left + (dx ?? width / 2), top + (dy ?? height / 2)];
      },
      selector,
      at?.[0] ?? null,
      at?.[1] ?? null,
    );
  }
}
