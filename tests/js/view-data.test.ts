/** Data of pictures: every form that people have, and what is said about those that fit none. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { type Attention, readAttention } from "lookback/view";

const range = (length: number, from = 0): Float32Array => Float32Array.from({ length }, (_, i) => (i + from) / 1000);
const tensor = (dims: number[], from = 0) => ({
  data: range(
    dims.reduce((a, b) => a * b, 1),
    from,
  ),
  dims,
});
const size = ({ layers, heads, queryLength, keyLength }: Attention) => [layers, heads, queryLength, keyLength];
const code = (input: unknown, options = {}): [string, string] => {
  try {
    readAttention(input, options);
  } catch (error) {
    return [(error as { code: string }).code, (error as Error).message];
  }
  return ["", "it was accepted"];
};
const message = (input: unknown, options = {}): string => {
  const [which, text] = code(input, options);
  expect(which).toBe("invalid-attention");
  return text;
};

describe("weights", () => {
  test.each([
    [
      [3, 4],
      [1, 1, 3, 4],
    ],
    [
      [2, 3, 4],
      [1, 2, 3, 4],
    ],
    [
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ],
    [
      [5, 1, 2, 3, 4],
      [5, 2, 3, 4],
    ],
  ])("a tensor of dims %j", (dims, expected) => {
    expect(size(readAttention(tensor(dims)))).toEqual(expected);
  });

  test("a head of a batch's row lies where row-major order puts it, and is not copied", () => {
    const weights = tensor([2, 3, 2, 2]);
    const matrix = readAttention({ weights }, { batch: 1 }).matrix(0, 2);
    expect([...matrix]).toEqual([...weights.data.slice(20, 24)]);
    expect(matrix.buffer).toBe(weights.data.buffer);
  });

  test("transformers.js: a list of [1, heads, L, L], one per layer", () => {
    const attentions = [tensor([1, 2, 3, 3]), tensor([1, 2, 3, 3], 18)];
    const attention = readAttention({ attentions, tokens: ["a", "b", "c"] });
    expect(size(attention)).toEqual([2, 2, 3, 3]);
    expect([...attention.matrix(1, 1)]).toEqual([...range(9, 27)]);
  });

  test("model.attend: a list of lists of [L, L], with the layers' and heads' own numbers", () => {
    const weights = [
      [tensor([2, 2]), tensor([2, 2], 4)],
      [tensor([2, 2], 8), tensor([2, 2], 12)],
    ];
    const attention = readAttention({ ids: [5, 6], tokens: ["a", "b"], layers: [3, 7], heads: [0, 4], weights });
    expect(size(attention)).toEqual([2, 2, 2, 2]);
    expect(attention.layerNumbers).toEqual([3, 7]);
    expect(attention.headNumbers).toEqual([0, 4]);
    expect([...attention.matrix(1, 1)]).toEqual([...range(4, 12)]);
  });

  test("nested arrays of a JSON file: 4 levels are layers of heads, 5 have a batch between", () => {
    const head = [[1], [0]];
    expect(
      size(
        readAttention([
          [head, head],
          [head, head],
          [head, head],
        ]),
      ),
    ).toEqual([3, 2, 2, 1]);
    expect(size(readAttention([[[head, head]], [[head, head]]]))).toEqual([2, 2, 2, 1]);
    expect([...readAttention([[[0.25, 0.75]]]).matrix(0, 0)]).toEqual([0.25, 0.75]);
  });

  test("half floats, as old engines give them, doubles, and typed arrays that went through JSON", () => {
    const halves = { type: "float16", data: Uint16Array.of(0x3800, 0xc000, 0x7c00, 0x0001), dims: [2, 2] };
    expect([...readAttention(halves).matrix(0, 0)]).toEqual([0.5, -2, Number.POSITIVE_INFINITY, 2 ** -24]);
    expect([...readAttention({ data: Float64Array.of(0.5, 0.25), dims: [1, 2] }).matrix(0, 0)]).toEqual([0.5, 0.25]);
    const json = JSON.parse(JSON.stringify(tensor([2, 2])));
    expect([...readAttention(json).matrix(0, 0)]).toEqual([...range(4)]);
  });

  test("names of other tools' files", () => {
    const two = readAttention({ attn: [[[[1, 0]]]], left_text: ["a"], right_text: ["x", "y"] });
    expect(two.queryTokens.map(({ label }) => label)).toEqual(["a"]);
    expect(two.keyTokens.map(({ label }) => label)).toEqual(["x", "y"]);
    expect(two.queryOffset).toBeNull();
  });

  test("negative numbers are scores, and −∞ from a file that wrote it as a word or as null is masked or missing", () => {
    expect(readAttention([[0.5, 0.5]]).kind).toBe("weights");
    const scores = readAttention([
      [1, "-Infinity"],
      [null, -3],
    ]);
    expect(scores.kind).toBe("scores");
    expect([...scores.matrix(0, 0)]).toEqual([1, Number.NEGATIVE_INFINITY, Number.NaN, -3]);
  });
});

describe("generation", () => {
  const step = (keys: number, text: string, row = 0) => ({
    row,
    text,
    weights: { layers: [2], heads: [0, 1], tensor: tensor([1, 2, keys], keys * 10) },
  });

  test("steps become rows, each with one key more; keys that were not there yet are 0", () => {
    const attention = readAttention({ tokens: ["▁Once", "▁upon"], steps: [step(2, " a"), step(3, " time")] });
    expect(size(attention)).toEqual([1, 2, 2, 3]);
    expect([...attention.matrix(0, 1)]).toEqual([...range(2, 22), 0, ...range(3, 33)]);
    expect(attention.keyTokens.map(({ label }) => label)).toEqual(["·Once", "·upon", "·a"]);
    expect(attention.queryTokens.map(({ label }) => label)).toEqual(["·upon", "·a"]);
    expect(attention.isFuture(0, 2)).toBe(true);
    expect(attention.isFuture(1, 2)).toBe(false);
    expect(attention.layerNumbers).toEqual([2]);
  });

  test("steps of another text of the batch are left out, and a missing one is said", () => {
    const steps = [step(2, "a"), step(5, "x", 1), step(3, "b"), step(6, "y", 1)];
    expect(size(readAttention({ steps }, { batch: 1 }))).toEqual([1, 2, 2, 6]);
    expect(message({ steps: [step(2, "a"), step(4, "b")] })).toContain("steps[1] looks at 4 tokens, but 3 were there");
    expect(message({ steps: [{ text: "a" }] })).toContain("weights: true");
  });
});

describe("tokens", () => {
  test("fewer queries than tokens are the last ones, as with a cache", () => {
    const attention = readAttention({ weights: tensor([2, 4]), tokens: ["a", "b", "c", "d"] });
    expect(attention.queryTokens.map(({ label, position }) => [label, position])).toEqual([
      ["c", 2],
      ["d", 3],
    ]);
    expect(attention.isFuture(0, 3)).toBe(true);
    expect(attention.cellOf(3, 1)).toEqual({ query: 1, key: 1 });
  });

  test("two texts have no future", () => {
    const attention = readAttention({ weights: tensor([2, 3]), queryTokens: ["a", "b"], keyTokens: ["x", "y", "z"] });
    expect(attention.isFuture(0, 2)).toBe(false);
  });

  test("without tokens positions stand for them", () => {
    expect(readAttention(tensor([2, 3])).queryTokens.map(({ label }) => label)).toEqual(["1", "2"]);
  });

  test("special tokens can be left out, with their rows, columns and vectors", () => {
    const given = { weights: tensor([3, 3]), tokens: ["<s>", "a", "b"], v: tensor([3, 2]) };
    const attention = readAttention(given).withoutSpecial();
    expect(size(attention)).toEqual([1, 1, 2, 2]);
    expect([...attention.matrix(0, 0)]).toEqual([0.004, 0.005, 0.007, 0.008].map(Math.fround));
    expect(attention.keyTokens.map(({ position }) => position)).toEqual([1, 2]);
    expect([...(attention.vectors(0, 0)?.values?.data ?? [])]).toEqual([...range(4, 2)]);
  });
});

describe("vectors", () => {
  let lb: Lookback;
  beforeAll(async () => {
    lb = await createLookback();
  });
  afterAll(() => lb?.dispose());

  test.each([
    ["[batch, heads, L, width]", [2, 4, 3, 5], [2, 2, 3, 5]],
    ["[L, heads · width]", [3, 20], [3, 10]],
  ])("the dot product of a pair is the score of lb.attention, grouped heads too: %s", (_, qDims, kDims) => {
    const q = {
      data: Float32Array.from({ length: 120 }, (_, i) => Math.sin(i)).slice(
        0,
        qDims.reduce((a, b) => a * b),
      ),
      dims: qDims,
    };
    const k = {
      data: Float32Array.from({ length: 60 }, (_, i) => Math.cos(i)).slice(
        0,
        kDims.reduce((a, b) => a * b),
      ),
      dims: kDims,
    };
    if (qDims.length === 2) k.dims = qDims;
    if (qDims.length === 2) k.data = Float32Array.from({ length: 60 }, (_, i) => Math.cos(i));
    const { weights } = lb.attention(q, k, k, { heads: 4, weights: "scores" });
    const batch = qDims.length === 4 ? 1 : 0;
    const attention = readAttention({ weights, q, k }, { batch });
    for (let head = 0; head < 4; head++)
      for (let query = 0; query < 3; query++)
        for (let key = 0; key < 3; key++) {
          const score = attention.score(0, head, query, key);
          expect(score?.scaled).toBeCloseTo(weights.data[((batch * 4 + head) * 3 + query) * 3 + key]!, 5);
          expect((score?.product ?? 0) / Math.sqrt(5)).toBeCloseTo(score?.scaled ?? Number.NaN, 9);
        }
  });

  test("a weight times its value's length", () => {
    const attention = readAttention({ weights: [[0.5, 0.5]], v: { data: Float32Array.of(3, 4, 0, 2), dims: [2, 2] } });
    expect([...(attention.valueWeighted(0, 0) ?? [])]).toEqual([2.5, 1]);
    expect(readAttention([[1]]).valueWeighted(0, 0)).toBeNull();
  });

  test("the mean of heads", () => {
    const attention = readAttention([[[1, 0]], [[0.5, 0.5]], [[0, 1]]]);
    expect([...attention.matrix(0, "mean")]).toEqual([0.5, 0.5]);
    expect([...attention.matrix(0, [0, 1])]).toEqual([0.75, 0.25]);
  });
});

describe("what does not fit is said with the numbers received", () => {
  test.each([
    [undefined, /there is no attention to show. Accepted: \{ weights, tokens \}/],
    [17, /received 17/],
    [{ tokens: ["a"] }, /no weights in an object with the keys tokens/],
    [{ weights: [[1, 2], [3]] }, /weights\[1\] has 1 entries where weights has 2/],
    [{ weights: [["x"]] }, /weights\[0\]\[0\] must be a number; received "x"/],
    [{ weights: { data: new Float32Array(3), dims: [2, 2] } }, /dims \[2, 2\] describe 4 numbers, but data holds 3/],
    [{ weights: { data: "abc", dims: [1, 3] } }, /data must be a Float32Array/],
    [{ weights: { data: range(4), dims: [2, 2.5] } }, /whole numbers/],
    [{ weights: { data: range(4), dims: [4] } }, /2 to 5 dimensions/],
    [{ weights: [tensor([1, 2, 3, 3]), tensor([1, 4, 3, 3])] }, /layer 1 has heads 4, but layer 0 has 2/],
    [{ weights: tensor([0, 2, 2]) }, /empty: 0 heads, 2 queries, 2 keys/],
    [{ weights: tensor([2, 2]), tokens: ["a"] }, /1 tokens for 2 keys/],
    [{ weights: tensor([2, 2]), tokens: ["a", {}] }, /tokens\[1\] must be a string/],
    [{ weights: tensor([2, 2]), kind: "logits" }, /kind must be "weights" or "scores"; received "logits"/],
    [{ weights: tensor([2, 2]), q: tensor([2, 3]) }, /q and k belong together; k is missing/],
    [{ weights: tensor([2, 2]), q: tensor([2, 3]), k: tensor([2, 4]) }, /equally wide per head; received 3 and 4/],
    [{ weights: tensor([2, 2]), q: tensor([3, 3]), k: tensor([2, 3]) }, /q must be .* received \[3, 3\]/],
    [{ weights: tensor([2, 2]), layers: [1, 2] }, /layers must be 1 whole numbers/],
  ])("%# %j", (input, expected) => {
    expect(message(input)).toMatch(expected);
  });

  test("a batch row that is not there, a tensor whose numbers are elsewhere", () => {
    expect(message(tensor([2, 1, 2, 2]), { batch: 2 })).toContain(
      "batch 2 does not exist: weights [2, 1, 2, 2] have 2",
    );
    const remote = {
      dims: [2, 2],
      get data(): Float32Array {
        throw new Error("the tensor is on the GPU");
      },
    };
    expect(message(remote)).toContain("on the GPU");
  });
});

test("under Node.js the import registers nothing and does nothing", async () => {
  const view = await import("lookback/view");
  expect(typeof view.AttentionMap).toBe("function");
  expect("customElements" in globalThis).toBe(false);
});
