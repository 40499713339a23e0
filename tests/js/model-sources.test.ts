/** Where models come from: paths, URLs, Files, bytes; and what happens on the way. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { loadDecoder, type ModelSource, type Progress } from "lookback/model";
import { expectAlive, expectError, rejected } from "./support/helpers.ts";
import {
  filesOf,
  llamaShapes,
  type ModelFolder,
  randomTensors,
  VOCABULARY,
  writeFolder,
} from "./support/model-folders.ts";
import { readStories, STORIES_MISSING, storiesPath, storiesPresent } from "./support/stories.ts";

/** 7 MB, so that it comes in several pieces. */
const CONFIG = {
  ...{ model_type: "llama", vocab_size: VOCABULARY, hidden_size: 192, intermediate_size: 768, num_hidden_layers: 3 },
  ...{ num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 64, tie_word_embeddings: true },
};
const FOLDER: ModelFolder = { config: CONFIG, tensors: randomTensors(llamaShapes(CONFIG, { tied: true }), 1) };

let lb: Lookback;
let path: string;
let server: Server;
let origin: string;
/** What has been asked for. */
const requests: string[] = [];

beforeAll(async () => {
  lb = await createLookback();
  path = mkdtempSync(join(tmpdir(), "lookback-model-"));
  writeFolder(path, FOLDER);
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://localhost");
    requests.push(pathname);
    const [, mode, name] = pathname.split("/");
    let bytes: Buffer;
    try {
      bytes = readFileSync(join(path, name!));
    } catch {
      // Some servers have a page for everything.
      if (mode === "pages")
        return void response.setHeader("content-type", "text/html; charset=utf-8").end("<!doctype html>");
      return void response.writeHead(404).end();
    }
    if (mode === "secret" && searchParams.get("token") !== "x") return void response.writeHead(403).end();
    if (mode === "chunked") response.setHeader("transfer-encoding", "chunked");
    else response.setHeader("content-length", bytes.length);
    if (mode === "short" && name === "model.safetensors") {
      response.write(bytes.subarray(0, 3_000_000), () => response.destroy());
      return;
    }
    response.end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  lb.dispose();
  rmSync(path, { recursive: true });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const logitsOf = async (source: ModelSource): Promise<Float32Array> => {
  const model = await loadDecoder(lb, source);
  const { logits } = model.forward([1, 2, 3]);
  model.dispose();
  return logits.data;
};

describe("the same model", () => {
  let expected: Float32Array;
  beforeAll(async () => {
    expected = await logitsOf(filesOf(FOLDER));
    expect(expected.every(Number.isFinite)).toBe(true);
  });
  const sources: [string, () => ModelSource][] = [
    ["a path", () => path],
    ["a path with a slash at its end", () => `${path}/`],
    ["a file: URL", () => pathToFileURL(path)],
    ["a URL", () => `${origin}/plain`],
    ["a URL object with a slash", () => new URL(`${origin}/plain/`)],
    ["a URL whose server does not tell lengths", () => `${origin}/chunked`],
    ["a URL with a token", () => `${origin}/secret?token=x`],
    ["a server that has a page for everything", () => `${origin}/pages`],
  ];

  test.each(sources)("comes from %s", async (_what, source) => {
    expect(await logitsOf(source())).toEqual(expected);
  });

  test("comes from files that lie anywhere, and has the name that they are given", async () => {
    const files = {
      "config.json": new URL(`${origin}/plain/config.json`),
      "tokenizer.json": join(path, "tokenizer.json"),
      "model.safetensors": readFileSync(join(path, "model.safetensors")),
    };
    expect(await logitsOf({ files })).toEqual(expected);
    const model = await loadDecoder(lb, { name: "mine", files });
    expect(model.name).toBe("mine");
    model.dispose();
  });

  test("comes from files that a bundler has written into their addresses, without a request", async () => {
    const [config, tokenizer] = ["config.json", "tokenizer.json"].map((name) => readFileSync(join(path, name)));
    const files = {
      "config.json": new URL(`data:application/json;base64,${config!.toString("base64")}`),
      "tokenizer.json": `data:application/json,${encodeURIComponent(tokenizer!.toString())}`,
      "model.safetensors": readFileSync(join(path, "model.safetensors")),
    };
    requests.length = 0;
    expect(await logitsOf({ files })).toEqual(expected);
    expect(requests).toEqual([]);
    const error = await rejected(loadDecoder(lb, { files: { "config.json": "data:application/json;base64,%" } }));
    expectError(error, "bad-option", "data: URL", "base64");
  });

  test("misses a file that was not named", async () => {
    const error = await rejected(loadDecoder(lb, { files: { "config.json": join(path, "config.json") } }));
    expectError(error, "model-unreachable", "tokenizer.json is missing", 'the files are ["config.json"]');
    const none = await rejected(loadDecoder(lb, { files: [] } as unknown as ModelSource));
    expectError(none, "bad-option", "the source: files", "files by their names");
    const typo = await rejected(loadDecoder(lb, { files: {}, named: "x" } as unknown as ModelSource));
    expectError(typo, "unknown-option", "named", "Did you mean 'name'?");
    await expectAlive(lb);
  });

  test("one file of weights is fetched once", async () => {
    requests.length = 0;
    await logitsOf(`${origin}/plain`);
    expect(requests.filter((one) => one.endsWith("model.safetensors"))).toHaveLength(1);
  });
});

describe("llama2.c's files", () => {
  if (!storiesPresent) {
    test.skip(STORIES_MISSING, () => {});
    return;
  }
  const weights = () => readStories("stories260K.bin");
  const tokenizer = () => readStories("tok512.bin");
  const sources: [string, () => ModelSource][] = [
    ["paths", () => ({ weights: storiesPath("stories260K.bin"), tokenizer: storiesPath("tok512.bin") })],
    ["ArrayBuffers", () => ({ weights: weights().buffer, tokenizer: tokenizer().buffer })],
    ["Files", () => ({ weights: new File([weights()], "a.bin"), tokenizer: new File([tokenizer()], "b.bin") })],
    ["a part of a buffer", () => ({ weights: moved(weights()), tokenizer: moved(tokenizer()) })],
  ];

  test.each(sources)("come as %s", async (_what, source) => {
    const model = await loadDecoder(lb, source());
    expect(await model.generate("Once upon a time", { maxTokens: 6 }).text()).toBe(", there was a little g");
    model.dispose();
  });

  test("that do not belong together are refused", async () => {
    // The last token has three bytes.
    const words = tokenizer().slice(0, -11);
    const error = await rejected(loadDecoder(lb, { weights: weights(), tokenizer: words }));
    expectError(error, "invalid-tokenizer", "511", "512");
  });

  test("that were exchanged are recognised", async () => {
    const error = await rejected(loadDecoder(lb, { weights: tokenizer(), tokenizer: weights() }));
    expectError(error, "invalid-tokenizer", "tokenizer is a model", "exchanged");
  });

  test("of another version are refused", async () => {
    const bytes = weights();
    new Int32Array(bytes.buffer, 0, 2).set([0x616b3432, 2]);
    expectError(
      await rejected(loadDecoder(lb, { weights: bytes, tokenizer: tokenizer() })),
      "model-unknown",
      "version 2",
    );
  });

  test("of version 1 are the same model", async () => {
    const old = readStories("stories260K.bin");
    const floats = new Float32Array(old.buffer, 28);
    const header = new DataView(new ArrayBuffer(256));
    [0x616b3432, 1, 64, 172, 5, 8, 4, 512, 512].forEach((value, i) => {
      header.setInt32(4 * i, value, true);
    });
    header.setUint8(36, 1);
    // In version 0: embedding, attention norms, q, k, v, o, MLP norms, w1, w2, w3, final norm.
    const sizes = [
      512 * 64,
      5 * 64,
      5 * 4096,
      5 * 2048,
      5 * 2048,
      5 * 4096,
      5 * 64,
      5 * 172 * 64,
      5 * 172 * 64,
      5 * 172 * 64,
      64,
    ];
    const parts = sizes.map((size, i) => {
      const start = sizes.slice(0, i).reduce((sum, n) => sum + n, 0);
      return floats.slice(start, start + size);
    });
    const order = [1, 6, 10, 0, 2, 3, 4, 5, 7, 8, 9].map((i) => parts[i]!);
    const bytes = await new Blob([header.buffer, ...order]).arrayBuffer();
    const model = await loadDecoder(lb, { weights: bytes, tokenizer: tokenizer() });
    expect(await model.generate("Once upon a time", { maxTokens: 6 }).text()).toBe(", there was a little g");
    model.dispose();
  });
});

/** The same bytes, where no view of floats is aligned. */
function moved(bytes: Uint8Array): Uint8Array {
  const larger = new Uint8Array(bytes.length + 3);
  larger.set(bytes, 3);
  return larger.subarray(3);
}

describe("on the way", () => {
  test.each([
    ["a path", () => path],
    ["a URL", () => `${origin}/chunked`],
  ])("progress from %s rises to the whole, piece by piece", async (_what, source) => {
    const seen: Progress[] = [];
    const model = await loadDecoder(lb, source(), { onProgress: (progress) => seen.push(progress) });
    const { total } = seen[0]!;
    expect(total).toBe(4 * model.inspect().parameters);
    model.dispose();
    expect(seen.at(-1)).toMatchObject({ loaded: total, file: expect.stringContaining("model.safetensors") });
    seen.reduce((before, { loaded }) => {
      expect(loaded).toBeGreaterThan(before);
      expect(loaded - before).toBeLessThanOrEqual(2 ** 20);
      return loaded;
    }, 0);
  });

  test.each([
    ["a path", () => path],
    ["a URL", () => `${origin}/plain`],
  ])("B6: a signal ends loading from %s, and nothing is left", async (_what, source) => {
    const before = lb.memory();
    const controller = new AbortController();
    const reason = new Error("enough");
    let pieces = 0;
    const loading = loadDecoder(lb, source(), {
      signal: controller.signal,
      onProgress: () => {
        if (++pieces === 3) controller.abort(reason);
      },
    });
    await expect(loading).rejects.toBe(reason);
    expect(pieces).toBe(3);
    expect(lb.memory()).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
  });

  test("a connection that breaks off is an error, and nothing is left", async () => {
    const before = lb.memory();
    const error = await rejected(loadDecoder(lb, `${origin}/short`));
    expectError(error, "model-unreachable", "model.safetensors", "broke off");
    expect(lb.memory()).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
    expectAlive(lb);
  });

  test("an error in onProgress comes out, and nothing is left", async () => {
    const before = lb.memory();
    const mine = new Error("mine");
    const onProgress = () => {
      throw mine;
    };
    await expect(loadDecoder(lb, path, { onProgress })).rejects.toBe(mine);
    expect(lb.memory()).toMatchObject({ bytes: before.bytes, allocations: before.allocations });
  });
});

describe("B4: sources that are none", () => {
  // biome-ignore lint/suspicious/noExplicitAny: the wrong types are the point
  const refusals: [string, any, string, string[]][] = [
    ["nothing", undefined, "bad-option", ["folder's path or URL", "undefined"]],
    ["a number", 7, "bad-option", ["weights, tokenizer", "7"]],
    ["a single file", "model.bin", "bad-option", ["one file", "weights: "]],
    ["a single file behind a URL", "http://127.0.0.1:1/model.bin?download=true", "bad-option", ["one file"]],
    ["an empty path", "", "bad-option", ["folder's path or URL", '""']],
    ["an empty path among two", { weights: "", tokenizer: "y" }, "bad-option", ["weights must be", '""']],
    ["weights alone", { weights: "x" }, "bad-option", ["tokenizer is missing"]],
    ["a misspelt key", { weights: "x", tokeniser: "y" }, "unknown-option", ["'tokenizer'"]],
    ["texts in a list", ["x"], "bad-option", ["a File"]],
    ["an empty list", [], "model-unreachable", ["config.json is missing"]],
    [
      "a folder that is not there",
      "/nowhere/at/all",
      "model-unreachable",
      ["/nowhere/at/all/config.json", "no such file"],
    ],
    [
      "a host that is not there",
      "http://127.0.0.1:1/x",
      "model-unreachable",
      ["http://127.0.0.1:1/x/config.json", "fetch failed ("],
    ],
  ];

  test.each(refusals)("%s", async (_what, source, code, shown) => {
    const error = await rejected(loadDecoder(lb, source));
    expect(error.code).toBe(code);
    for (const part of shown) expect(error.message).toContain(part);
  });

  test("a server without the folder, or that forbids it", async () => {
    expectError(await rejected(loadDecoder(lb, `${origin}/plain/deeper`)), "model-unreachable", "HTTP status 404");
    expectError(await rejected(loadDecoder(lb, `${origin}/secret`)), "model-unreachable", "HTTP status 403");
  });

  test("no instance, or one that was disposed of", async () => {
    // biome-ignore lint/suspicious/noExplicitAny: the wrong types are the point
    expectError(await rejected(loadDecoder({} as any, path)), "bad-option", "createLookback");
    const other = await createLookback();
    other.dispose();
    expectError(await rejected(loadDecoder(other, path)), "disposed");
  });

  test("an option that does not exist", async () => {
    // biome-ignore lint/suspicious/noExplicitAny: the wrong types are the point
    expectError(await rejected(loadDecoder(lb, path, { onprogress: 1 } as any)), "unknown-option", "'onProgress'");
  });
});
