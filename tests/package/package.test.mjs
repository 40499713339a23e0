/** The packed tarball, installed into a folder of its own as a user would: this is what is published, so this is what is tested. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { availableParallelism, tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { build as viteBuild } from "vite";
import webpack from "webpack";
import { findTools } from "../../bindings/toolchain/find.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const fixture = join(root, "tests/package/fixture");
const folder = mkdtempSync(join(tmpdir(), "lookback-package-"));
const app = join(folder, "app");
const installed = join(app, "node_modules/lookback");
let tarball = "";
const VARIANTS = ["simd", "relaxed", "simd-threads", "relaxed-threads"];

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 */
function run(command, args, cwd) {
  const result = spawnSync(command, args, { cwd, encoding: "utf8" });
  assert.equal(result.status, 0, `${command} ${args.join(" ")}\n${result.stdout}\n${result.stderr}`);
  return result.stdout;
}

/** @param {string} source @param {string} type */
function runInApp(source, type) {
  return execFileSync(process.execPath, [`--input-type=${type}`, "--eval", source], {
    cwd: app,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}

/** @param {string} from @returns {string[]} */
const filesUnder = (from) =>
  readdirSync(from, { recursive: true, encoding: "utf8" }).filter((name) => statSync(join(from, name)).isFile());

before(() => {
  mkdirSync(app);
  writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }));
  const [packed] = Object.values(
    JSON.parse(run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], root)),
  );
  tarball = join(folder, packed.filename);
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", tarball], app);
});

after(() => rmSync(folder, { recursive: true, force: true }));

test("it holds the compiled package and nothing else, and stays small", () => {
  const files = filesUnder(installed);
  assert.deepEqual(
    files.filter(
      (name) =>
        !/^(dist\/.*\.(js|mjs|d\.ts|wasm)|package\.json|README(\.[\w-]+)?\.md|LICENSE|js\/models\/(alice\.txt|(english-prose|tang-verse)\/[\w.]+))$/.test(
          name,
        ),
    ),
    [],
  );
  for (const variant of VARIANTS) {
    for (const suffix of ["wasm", "node.mjs", "web.mjs", ...(variant.endsWith("-threads") ? ["worker.mjs"] : [])])
      assert.ok(files.includes(`dist/wasm/lookback-${variant}.${suffix}`));
    const { size } = statSync(join(installed, `dist/wasm/lookback-${variant}.wasm`));
    assert.ok(size < 300_000, `the ${variant} wasm has ${size} bytes`);
  }
});

test("import and require find it by its name", () => {
  const use = "createLookback().then((lb) => { console.log(lb.variant); lb.dispose(); })";
  const expected = Number(process.versions.node.split(".")[0]) >= 22 ? "relaxed" : "simd";
  assert.equal(runInApp(`import { createLookback } from "lookback"; ${use}`, "module"), expected);
  assert.equal(runInApp(`const { createLookback } = require("lookback"); ${use}`, "commonjs"), expected);
});

test("lookback/model is found both ways, and the command is installed", () => {
  const use = "console.log(typeof loadDecoder)";
  assert.equal(runInApp(`import { loadDecoder } from "lookback/model"; ${use}`, "module"), "function");
  assert.equal(runInApp(`const { loadDecoder } = require("lookback/model"); ${use}`, "commonjs"), "function");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  assert.equal(run(join(app, "node_modules/.bin/lookback"), ["--version"], app).trim(), version);
});

test("lookback/view is found both ways, and registers nothing where there are no elements", () => {
  const use = "console.log(typeof AttentionMap, readAttention([[1]]).heads)";
  assert.equal(runInApp(`import { AttentionMap, readAttention } from "lookback/view"; ${use}`, "module"), "function 1");
  const required = `const { AttentionMap, readAttention } = require("lookback/view"); ${use}`;
  assert.equal(runInApp(required, "commonjs"), "function 1");
});

test("its types compile, as Node's modules and for a bundler", () => {
  copyFileSync(join(fixture, "consumer.ts"), join(app, "consumer.ts"));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  for (const [module = "", resolution = ""] of [
    ["NodeNext", "NodeNext"],
    ["ESNext", "Bundler"],
  ]) {
    const options = [
      "--noEmit",
      "--strict",
      "--target",
      "ES2022",
      "--lib",
      "ES2022,DOM,ESNext.Disposable",
      "--types",
      "",
    ];
    run(process.execPath, [tsc, ...options, "--module", module, "--moduleResolution", resolution, "consumer.ts"], app);
  }
});

test("publint has nothing to say", async () => {
  const { messages, pkg } = await publint({ pkgDir: installed, strict: true });
  assert.deepEqual(
    messages.map((message) => formatMessage(message, pkg)),
    [],
  );
});

test("are the types wrong? No", () => {
  const cli = join(root, "node_modules/@arethetypeswrong/cli/dist/index.js");
  // It is an ES module that Node 20.19 and newer can require(), so "CommonJS resolves to ESM" is meant.
  run(
    process.execPath,
    [cli, tarball, "--profile", "node16", "--ignore-rules", "cjs-resolves-to-esm", "--no-color"],
    root,
  );
});

test("Vite bundles it, and the bundle runs in a browser", async (t) => {
  const page = bundlePage("vite", '<!doctype html><script type="module" src="./page.js"></script>');
  await viteBuild({
    root: page,
    configFile: false,
    logLevel: "error",
    base: "./",
    build: { outDir: "out", emptyOutDir: true },
  });
  checkBundle(join(page, "out"));
  await runInBrowser(t, join(page, "out"));
});

test("webpack bundles it, and the bundle runs in a browser", async (t) => {
  const page = bundlePage("webpack", '<!doctype html><script defer src="./main.js"></script>');
  const output = join(page, "out");
  const stats = await new Promise((resolve, reject) => {
    webpack(
      {
        mode: "production",
        context: page,
        entry: "./page.js",
        output: { path: output, filename: "main.js" },
        performance: false,
      },
      (error, result) => (error ? reject(error) : resolve(result)),
    );
  });
  assert.deepEqual(stats.toJson({ all: false, errors: true }).errors, []);
  copyFileSync(join(page, "index.html"), join(output, "index.html"));
  checkBundle(output);
  await runInBrowser(t, output);
});

/** What the page's bundled model is to write: the same as here. */
function proseInNode() {
  return JSON.parse(
    runInApp(
      `import { createLookback } from "lookback";
      import { loadDecoder } from "lookback/model";
      import { englishProse } from "lookback/models/english-prose";
      const lb = await createLookback({ variant: "simd" });
      const model = await loadDecoder(lb, englishProse);
      console.log(JSON.stringify(await model.generate("Emma was", { maxTokens: 40, temperature: 0.7, seed: 1 }).text()));
      lb.dispose();`,
      "module",
    ),
  );
}

/** @param {string} name @param {string} html */
function bundlePage(name, html) {
  const page = join(app, name);
  mkdirSync(page);
  copyFileSync(join(fixture, "page.js"), join(page, "page.js"));
  writeFileSync(join(page, "index.html"), html);
  return page;
}

/** Every wasm is there, unchanged; nothing of Node came along. @param {string} output */
function checkBundle(output) {
  const files = filesUnder(output);
  const wasm = files.filter((name) => name.endsWith(".wasm")).map((name) => readFileSync(join(output, name)));
  for (const variant of VARIANTS) {
    const original = readFileSync(join(installed, `dist/wasm/lookback-${variant}.wasm`));
    assert.ok(
      wasm.some((bytes) => bytes.equals(original)),
      `the ${variant} wasm is missing from: ${files.join(", ")}`,
    );
  }
  for (const name of files.filter((file) => file.endsWith(".js"))) {
    assert.doesNotMatch(readFileSync(join(output, name), "utf8"), /["']node:/, `${name} imports a module of Node`);
  }
}

/** @param {import("node:test").TestContext} t @param {string} output */
async function runInBrowser(t, output) {
  const executablePath = findTools().chromium;
  assert.ok(executablePath, "Chromium is missing");
  /** @type {Record<string, string>} */
  const types = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".wasm": "application/wasm",
  };
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const path = normalize(pathname.replace(/^\/isolated/, "")).replace(/\/$/, "/index.html");
    if (pathname.startsWith("/isolated")) {
      response.setHeader("cross-origin-opener-policy", "same-origin");
      response.setHeader("cross-origin-embedder-policy", "require-corp");
    }
    // No eval, no workers but our own.
    response.setHeader("content-security-policy", "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'");
    try {
      const bytes = readFileSync(join(output, path));
      response.setHeader("content-type", types[extname(path)] ?? "application/octet-stream").end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address && typeof address === "object");
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    for (const isolated of [true, false]) {
      const page = await browser.newPage();
      await page.goto(`http://127.0.0.1:${address.port}/${isolated ? "isolated/" : ""}`);
      // The policy forbids what waits inside of the page.
      for (let looks = 0; looks < 400 && (await page.title()) === ""; looks++) await page.waitForTimeout(50);
      const several = isolated && availableParallelism() > 1;
      const reason = isolated ? (several ? "" : "one processor") : "not cross-origin isolated";
      assert.deepEqual(JSON.parse(await page.title()), {
        variant: "relaxed",
        row: [1, 0, 0, 0],
        threads: { isolated, several, reason, two: isolated ? 2 : "threads-unsupported" },
        equal: [true, isolated ? true : null],
        worker: { threads: true, same: true, responsive: true, rising: true, stopped: "enough" },
        model: { text: "bbb", refused: "model-unknown" },
        prose: proseInNode(),
      });
      await page.close();
    }
  } finally {
    await browser.close();
  }
}
