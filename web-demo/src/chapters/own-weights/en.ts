/** Your own weights, in English. The Chinese file has the same shape: the compiler sees to it. */
import type { Format, Problem } from "./parse";

export const en = {
  eyebrow: "Your own weights",
  title: "Attention from anywhere",
  lead: "Did your own program, or someone else’s library, compute attention weights? Put them here and look at them. Nothing is sent anywhere: the file stays on this machine.",
  drop: "Drop a file here, or paste its text",
  placeholder: '{ "weights": [[[1, 0], [0.4, 0.6]]], "tokens": ["I", "see"] }',
  open: "Open a file",
  kinds:
    "JSON ({ weights, tokens }, transformers.js’ attentions, BertViz’ attn with left_text and right_text), tables (CSV, TSV), NumPy’s .npy.",
  tokens: "Tokens, if the data do not name them",
  tokensHint:
    "Separated by spaces, or a JSON list; first those of the queries, then those of the keys, if they differ.",
  examples: "Examples",
  exampleNames: { heads: "Heads as JSON", bertviz: "As BertViz has it", table: "A table" },
  sample: "The animal did not cross the street because it was tired",
  problem: "This cannot be read as attention",
  problemText(problem: Problem): string {
    switch (problem.code) {
      case "empty":
        return "The file is empty.";
      case "json":
        return "It begins like JSON, but is not. Is the end missing, or a comma too much?";
      case "no-weights":
        return `It is an object, but has no “weights” (nor “attentions”, “attention”, “attn”). Its keys: ${problem.keys.join(", ") || "none"}.`;
      case "archive":
        return "It is an archive (.npz or .zip). Save a single array with np.save, or unpack it first.";
      case "npy":
        return "It begins like a NumPy file, but is damaged or cut off.";
      case "npy-dims":
        return `The array has dims [${problem.dims.join(", ")}]; at least [queries, keys] are needed.`;
      case "npy-type":
        return `The array has the type ${problem.dtype}; floats and integers of up to 32 bits, and float64, can be read. Use array.astype("float32").`;
      case "ragged":
        return `Line ${problem.line} has ${problem.found} numbers where the first has ${problem.expected}: all rows must be equally long.`;
      case "not-a-number":
        return `Line ${problem.line}, column ${problem.column}: “${problem.found}” is not a number.`;
      case "tokens":
        return `There are ${problem.count} tokens for ${problem.queries} queries and ${problem.keys} keys: give ${problem.keys}, or ${problem.queries + problem.keys} if queries and keys are different texts.`;
      case "refused":
        return "Its shape or its numbers do not fit:";
    }
  },
  likeThis: "It could look like this:",
  result: "What was read",
  formats: { json: "JSON", table: "Table", npy: "NumPy array" } satisfies Record<Format, string>,
  shape: (layers: number, heads: number, queries: number, keys: number) =>
    `${layers} ${layers === 1 ? "layer" : "layers"} × ${heads} ${heads === 1 ? "head" : "heads"}, ${queries} queries × ${keys} keys`,
  scores: "signed scores, not weights",
  sums: (least: string, most: string) =>
    least === most
      ? `Each row of this head sums to ${least}.`
      : `Rows of this head sum to between ${least} and ${most}.`,
  map: "Attention weights",
  text: "The text, tinted by where a word looks",
};

export type OwnWeightsMessages = typeof en;
