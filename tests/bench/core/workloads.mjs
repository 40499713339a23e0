/** The cases, and what each calculation has to do at least. */

/** @typedef {import("./types.ts").Workload} Workload */
/** @typedef {import("./types.ts").BenchCase} BenchCase */
/** @typedef {import("./types.ts").Work} Work */

const MEBIBYTE = 2 ** 20;
const shape = { heads: 12, headDim: 64 };

/**
 * @param {string} id
 * @param {string} title
 * @param {Omit<import("./types.ts").AttentionShape, "heads" | "headDim">} options
 * @param {"ours"} [contestants]
 * @returns {Workload}
 */
function attention(id, title, options, contestants) {
  return { id, title, kind: "attention", ...shape, ...options, ...(contestants && { contestants }) };
}

/**
 * @param {string} id
 * @param {number} keyLength
 * @param {"f32" | "int8"} type
 * @param {"ours"} [contestants]
 * @returns {Workload}
 */
function decode(id, keyLength, type, contestants) {
  const title = `1 query × ${keyLength} cached keys, ${type === "int8" ? "int8" : "float32"}`;
  return { id, title, kind: "decode", ...shape, keyLength, type, ...(contestants && { contestants }) };
}

/**
 * The last one is what the case is named after.
 * @param {number} inputs
 * @param {number} outputs
 */
const oneRow = (inputs, outputs) =>
  /** @type {const} */ (["int8", "f32"]).map(
    (type) =>
      /** @type {Workload} */ ({
        id: type,
        title: `1 row × ${inputs} → ${outputs}, ${type === "int8" ? "int8" : "float32"}`,
        kind: "row",
        inputs,
        outputs,
        type,
        contestants: "ours",
      }),
  );

/**
 * A GPT-2 in both types; the last one is what the case is named after.
 * @param {Omit<import("./types.ts").StepShape, "type">} shape
 */
const step = (shape) =>
  /** @type {const} */ (["int8", "f32"]).map(
    (type) =>
      /** @type {Workload} */ ({
        id: type,
        title: `one token, ${type === "int8" ? "int8" : "float32"}`,
        kind: "step",
        ...shape,
        type,
        // Half a gigabyte for each contestant.
        contestants: "one thread",
      }),
  );

/**
 * The last one is what the case is named after.
 * @param {number} tokens
 */
const texts = (tokens) =>
  /** @type {const} */ (["sampled", "greedy"]).map(
    (id) =>
      /** @type {Workload} */ ({
        id,
        title: `up to ${tokens} tokens, ${id}`,
        kind: "generate",
        tokens,
        temperature: id === "greedy" ? 0 : 1,
        contestants: "one thread",
      }),
  );

/**
 * @param {import("./types.ts").TrainingShape} shape
 * @returns {Workload[]}
 */
const training = (shape) => [
  { id: "step", title: "forward, backward, AdamW", kind: "training", ...shape, contestants: "ours" },
];

/**
 * @param {number} length
 * @param {number} longer
 */
const longer = (length, longer) => [
  attention("short", `causal, L = ${length}`, { length, causal: true }, "ours"),
  attention("long", `causal, L = ${longer}`, { length: longer, causal: true }),
];

/** @type {readonly BenchCase[]} */
export const cases = [
  {
    id: "ceilings",
    title: "Ceilings of this machine, measured in wasm, one core",
    workloads: [
      { id: "multiply-add", title: "multiply-add in registers", kind: "multiply-add" },
      ...[1, 24, 256].map(
        (size) =>
          /** @type {const} */ ({
            id: `read-${size}`,
            title: `read ${size} MiB`,
            kind: "read",
            bytes: size * MEBIBYTE,
          }),
      ),
    ],
  },
  {
    id: "causal-1024",
    title: "Causal attention, L = 1024",
    workloads: [attention("causal", "causal", { length: 1024, causal: true })],
  },
  {
    id: "causal-128",
    title: "Causal attention, L = 128",
    workloads: [attention("causal", "causal", { length: 128, causal: true })],
  },
  {
    id: "attention-backward",
    title: "Gradients of causal attention, L = 1024",
    workloads: [
      { id: "backward", title: "gradients, causal", kind: "backward", ...shape, length: 1024, contestants: "ours" },
    ],
    quick: [
      { id: "backward", title: "gradients, causal", kind: "backward", ...shape, length: 128, contestants: "ours" },
    ],
  },
  {
    id: "full-512",
    title: "Attention without a mask, L = 512",
    workloads: [attention("full", "no mask", { length: 512, causal: false })],
  },
  {
    id: "mask-1024",
    title: "Causal attention and a dense boolean mask, L = 1024",
    workloads: [
      attention("causal", "causal alone", { length: 1024, causal: true }, "ours"),
      attention("mask", "causal and mask", { length: 1024, causal: true, mask: true }),
    ],
  },
  {
    id: "weights-1024",
    title: "Causal attention that returns its weights, L = 1024 (50 MB)",
    workloads: [
      attention("causal", "without weights", { length: 1024, causal: true }, "ours"),
      attention("reused", "weights into a reused array", { length: 1024, causal: true, weights: "reused" }, "ours"),
      attention("fresh", "weights in a new array", { length: 1024, causal: true, weights: "fresh" }),
    ],
  },
  {
    id: "linear",
    title: "Linear layer, 512 × 768 → 2304",
    workloads: [{ id: "linear", title: "linear", kind: "linear", rows: 512, inputs: 768, outputs: 2304 }],
  },
  { id: "linear-row", title: "Linear layer of a decoder, one row, 768 → 3072", workloads: oneRow(768, 3072) },
  {
    id: "linear-head",
    title: "Output layer of a decoder, one row, 768 → 50,257 (154 MB)",
    workloads: oneRow(768, 50257),
    quick: oneRow(768, 8192),
  },
  {
    id: "layer",
    title: "Whole causal layer, width 768, 12 heads, L = 512",
    workloads: [{ id: "layer", title: "layer", kind: "layer", embedDim: 768, heads: 12, length: 512 }],
  },
  {
    id: "decode-4096",
    title: "Decoding, 1 query × 4096 cached keys",
    workloads: [decode("decode", 4096, "f32")],
  },
  {
    id: "decode-int8",
    title: "Decoding from an int8 cache, 16,384 keys",
    workloads: [decode("f32", 16384, "f32", "ours"), decode("int8", 16384, "int8", "ours")],
  },
  {
    id: "gpt2-step",
    title: "A token of a GPT-2 with 124 million weights (494 MB), after three others",
    workloads: step({ layers: 12, embedDim: 768, heads: 12, vocabulary: 50257, positions: 1024, held: 3 }),
    quick: step({ layers: 2, embedDim: 192, heads: 3, vocabulary: 2048, positions: 64, held: 3 }),
  },
  {
    id: "generate",
    title: "Text of stories260K by generate(); llama2.c, built natively with -O2, makes about 7600 tokens/s",
    workloads: texts(256),
    quick: texts(32),
  },
  {
    id: "training-step",
    title: "A training step of a GPT-2, width 256, 4 layers, 8 heads, 8 windows of 256 tokens",
    workloads: training({ layers: 4, embedDim: 256, heads: 8, vocabulary: 256, length: 256, batch: 8 }),
    quick: training({ layers: 1, embedDim: 32, heads: 2, vocabulary: 64, length: 32, batch: 2 }),
  },
  {
    id: "long-16384",
    title: "Causal attention, L = 16,384, against 64 times the time of L = 2048",
    workloads: longer(2048, 16384),
    quick: longer(512, 4096),
  },
];

/**
 * @param {Workload} workload
 * @returns {Work}
 */
export function workOf(workload) {
  switch (workload.kind) {
    case "attention": {
      const { heads, headDim, length, causal } = workload;
      const pairs = causal ? (length * (length + 1)) / 2 : length * length;
      return { operations: 4 * heads * headDim * pairs, bytes: 4 * 4 * heads * headDim * length };
    }
    case "backward": {
      const { heads, headDim, length } = workload;
      // Five products: scores again, dO·Vᵀ, and one for each of the three gradients.
      return { operations: 5 * heads * headDim * length * (length + 1), bytes: 8 * 4 * heads * headDim * length };
    }
    case "decode": {
      const { heads, headDim, keyLength, type } = workload;
      const values = 2 * heads * headDim * keyLength;
      return { operations: 2 * values, bytes: values * (type === "int8" ? 1 : 4) };
    }
    case "linear": {
      const { rows, inputs, outputs } = workload;
      return { operations: 2 * rows * inputs * outputs, bytes: 4 * (rows * (inputs + outputs) + inputs * outputs) };
    }
    case "row": {
      const { inputs, outputs, type } = workload;
      const weights = inputs * outputs;
      return { operations: 2 * weights, bytes: bytesOf(weights, type) };
    }
    case "layer": {
      const { embedDim, heads, length } = workload;
      const pairs = (length * (length + 1)) / 2;
      const projections = 2 * length * embedDim * 4 * embedDim;
      const headDim = embedDim / heads;
      return { operations: projections + 4 * heads * headDim * pairs, bytes: 4 * 4 * embedDim * embedDim };
    }
    case "step": {
      const { layers, embedDim, vocabulary, type } = workload;
      // Queries, keys, values and output are 4 · width², the MLP 8; the head is the token embedding.
      const weights = layers * 12 * embedDim * embedDim + vocabulary * embedDim;
      return { operations: 2 * weights, bytes: bytesOf(weights, type) };
    }
    case "training": {
      const { layers, embedDim, vocabulary, length, batch } = workload;
      const weights = layers * 12 * embedDim * embedDim + vocabulary * embedDim;
      const pairs = (length * (length + 1)) / 2;
      const forward = batch * (2 * length * weights + layers * 4 * embedDim * pairs);
      // Each product has two gradients of its size. What is computed again on the way back does not count.
      return { operations: 3 * forward, bytes: 4 * weights };
    }
    case "generate":
      return { operations: 0, bytes: 0, tokens: workload.tokens };
    case "read":
      return { operations: workload.bytes / 4, bytes: workload.bytes };
    case "multiply-add":
      return { operations: 0, bytes: 0 };
  }
}

/**
 * What limits the calculation, and so what its rate is counted in.
 * @param {Workload} workload
 * @returns {import("./types.ts").Unit}
 */
export function unitOf({ kind }) {
  if (kind === "generate") return "tokens/s";
  return ["decode", "row", "step", "read"].includes(kind) ? "GB/s" : "GFLOP/s";
}

/**
 * int8: a float32 scale for every 64 of them.
 * @param {number} weights
 * @param {"f32" | "int8"} type
 */
function bytesOf(weights, type) {
  return type === "int8" ? weights * (1 + 4 / 64) : 4 * weights;
}
