/** What a page downloads to use the package: every byte that is loaded eagerly counts. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { parse } from "@babel/parser";
import { bundled } from "../bench/node/bundle.mjs";

const dist = fileURLToPath(new URL("../../dist", import.meta.url));
const wasm = join(dist, "wasm");

test("the main entry with all that it exports stays below its limit", async () => {
  const { bytes, later } = await bundled(join(dist, "web.js"));
  // Bundlers put what the trainer and the entry share into a chunk of its own, which compresses a little less well.
  assert.ok(bytes <= 31_700, `web.js is ${bytes} bytes, minified and gzipped`);
  const asked = ["assert-causal.js", "make-trainer.js", "threads.js"];
  assert.deepEqual(later.sort(), asked, "only these are loaded when they are called for");
});

test("each glue stays below 10 kB, minified and gzipped", async () => {
  const glues = readdirSync(wasm).filter((name) => name.endsWith(".mjs") && !/threads/.test(name));
  assert.ok(glues.length >= 4);
  for (const name of glues) {
    const { bytes } = await bundled(join(wasm, name));
    assert.ok(bytes > 1000 && bytes <= 10_000, `${name} is ${bytes} bytes, minified and gzipped`);
  }
});

test("each glue with threads stays below 13 kB, minified and gzipped", async () => {
  for (const name of readdirSync(wasm).filter((file) => /threads.*\.mjs$/.test(file))) {
    const { bytes } = await bundled(join(wasm, name));
    assert.ok(bytes > 1000 && bytes <= 13_000, `${name} is ${bytes} bytes, minified and gzipped`);
  }
});

test("the elements with all that they import stay below 53 kB in one file, and bring nothing of the engine", () => {
  const text = readFileSync(join(dist, "view/view.js"));
  const bytes = gzipSync(text).length;
  assert.ok(bytes > 10_000 && bytes <= 53_000, `view.js is ${bytes} bytes, gzipped`);
  assert.doesNotMatch(text.toString(), /\.wasm|WebAssembly|\bimport\s*\(/);
  const { body } = parse(text.toString(), { sourceType: "module" }).program;
  assert.deepEqual(
    body.filter((statement) => "source" in statement && statement.source),
    [],
  );
});
