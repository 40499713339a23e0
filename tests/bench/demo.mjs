/**
 * How soon the demo is seen, and whether it stays at hand while it works: node tests/bench/demo.mjs [view] [train] [write] (default: all)
 *
 * - view: each chapter in a browser that has never seen the page, from asking for it to the first frame with content and to the largest one.
 *   Target: the first view within a second.
 * - train: 300 steps of a model with the mask and of one without. Target: no task of the main thread over 100 ms.
 * - write: 230 tokens at full speed. The same target.
 *
 * A task's time is that of the clock on the wall: what else the machine does lengthens it.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { findTools } from "../../bindings/toolchain/find.mjs";
import { verdict } from "./page-of-view.mjs";

const CHAPTERS = ["article", "write", "train", "mask-lab", "long-context", "own-weights"];
const READINGS = 5;
const MOST_VIEW = 1000;
const MOST_TASK = 100;
/** Milliseconds in which a reader sees what there is, before the first click. */
const SETTLED = 1000;
const asked = process.argv.slice(2);
const wants = (/** @type {string} */ part) => asked.length === 0 || asked.includes(part);

const executablePath = findTools().chromium;
if (!executablePath) throw new Error("Chromium was not found (LOOKBACK_CHROMIUM = its program)");
const launch = () => chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

/** The demo, built and served by a process of its own. @returns {Promise<{ url: string, close(): void }>} */
function serve() {
  const server = spawn(process.execPath, [fileURLToPath(new URL("../browser/serve.mjs", import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, NODE_ENV: "production" },
  });
  return new Promise((resolve, reject) => {
    server.on("exit", (code) => reject(new Error(`the demo could not be built or served (exit ${code})`)));
    let out = "";
    server.stdout.on("data", (chunk) => {
      out += chunk;
      const line = out.split("\n").find((each) => each.startsWith("{"));
      if (line) resolve({ .../** @type {{ url: string }} */ (JSON.parse(line)), close: () => server.stdin.end() });
    });
  });
}

/** Runs in the page: milliseconds from asking for it, once nothing larger has come for half a second. */
async function firstView() {
  let largest = 0;
  new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntries()) largest = startTime;
  }).observe({ type: "largest-contentful-paint", buffered: true });
  do await new Promise((resolve) => setTimeout(resolve, 500));
  while (largest === 0 || performance.now() - largest < 500);
  return { first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN, largest };
}

/** Runs in the page: notes how long the main thread's tasks take from now on. */
function watchTasks() {
  const tasks = /** @type {number[]} */ ([]);
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) tasks.push(Math.round(duration));
  }).observe({ type: "longtask" });
  Object.assign(globalThis, { tasks });
}

const median = (/** @type {number[]} */ values) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const { url, close } = await serve();

async function view() {
  for (const chapter of CHAPTERS) {
    const firsts = [];
    const largests = [];
    for (let reading = 0; reading < READINGS; reading++) {
      const browser = await launch();
      const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
      await page.goto(`${url}#lang=en&chapter=${chapter}`);
      const { first, largest } = await page.evaluate(firstView);
      firsts.push(first);
      largests.push(largest);
      await browser.close();
    }
    const shown = median(largests);
    console.log(
      `${chapter}: first content ${median(firsts).toFixed(0)} ms, largest ${shown.toFixed(0)} ms; ${verdict(shown < MOST_VIEW, `< ${MOST_VIEW} ms`)}`,
    );
  }
}

/** @param {string} chapter @param {string} settings Of its address. @param {string} phase That it ends in. */
async function work(chapter, settings, phase) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${url}#lang=en&chapter=${chapter}&${settings}`);
  const button = page.locator(".run .primary");
  await button.and(page.locator(":enabled")).waitFor();
  await page.waitForTimeout(SETTLED);
  await page.evaluate(watchTasks);
  const began = performance.now();
  await button.click();
  await page.waitForSelector(`.run-status[data-phase="${phase}"]`, { timeout: 300_000 });
  const seconds = (performance.now() - began) / 1000;
  const tasks = await page.evaluate(() => /** @type {number[]} */ (Reflect.get(globalThis, "tasks")));
  await browser.close();
  tasks.sort((a, b) => b - a);
  console.log(
    `${chapter}: ${seconds.toFixed(1)} s; ${tasks.length} tasks over 50 ms, the longest ${tasks.slice(0, 8).join(", ") || "none"}; ${verdict((tasks[0] ?? 0) <= MOST_TASK, `≤ ${MOST_TASK} ms`)}`,
  );
}

try {
  if (wants("view")) await view();
  if (wants("train")) await work("train", "steps=300", "ended");
  if (wants("write")) await work("write", "n=230&pace=full&seed=3", "ended");
} finally {
  close();
}
