/** The steps of a generation, as they come: each brings one row, a key longer than the one before. */
import { Attention } from "./data.js";
import { readNumbers, tokenTexts } from "./names.js";
import { type Block, isObject, isTensor, readTensor, refuse, show } from "./numbers.js";
import type { AttentionInput } from "./read.js";
import { numberedTokens, readTokens, type Token, type TokenFormat } from "./tokens.js";

interface StepRow {
  readonly block: Block;
  readonly layers: number;
  readonly heads: number;
  readonly keys: number;
  readonly text: string;
}

function readStep(step: unknown, where: string): StepRow & { weights: { layers?: unknown; heads?: unknown } } {
  const weights = isObject(step) ? step.weights : undefined;
  if (!isObject(weights) || !isTensor(weights.tensor))
    return refuse(
      `${where} has no weights: ask for them, generate(prompt, { weights: true }); received ${show(step)}.`,
    );
  const block = readTensor(weights.tensor, `${where}.weights.tensor`);
  const [layers = 0, heads = 0, keys = 0] = block.dims;
  if (block.dims.length !== 3 || layers * heads * keys === 0)
    refuse(`${where}.weights.tensor must be [layers, heads, tokens so far]; received dims [${block.dims.join(", ")}].`);
  const text = (step as { text?: unknown }).text;
  return { block, layers, heads, keys, text: typeof text === "string" ? text : "", weights };
}

export function readSteps(given: AttentionInput, batch: number, format: TokenFormat): Attention {
  if (!Array.isArray(given.steps)) return refuse(`steps must be a list; received ${show(given.steps)}.`);
  const steps = given.steps
    .filter((step) => !isObject(step) || step.row === undefined || step.row === batch)
    .map((step, index) => readStep(step, `steps[${index}]`));
  const [first] = steps;
  if (!first) return refuse(`there are no steps of text ${batch} yet.`);
  steps.forEach(({ layers, heads, keys }, index) => {
    if (layers !== first.layers || heads !== first.heads)
      refuse(
        `steps[${index}] has ${layers} layers of ${heads} heads, but steps[0] has ${first.layers} of ${first.heads}.`,
      );
    if (keys !== first.keys + index)
      refuse(`steps[${index}] looks at ${keys} tokens, but ${first.keys + index} were there: a step is missing.`);
  });
  const keyLength = first.keys + steps.length - 1;
  const keyTokens = tokensOf(tokenTexts(given.tokens, "tokens", batch), first, steps, format);
  return new Attention(
    {
      kind: "weights",
      layers: first.layers,
      heads: first.heads,
      queryLength: steps.length,
      keyLength,
      layerNumbers: readNumbers(first.weights.layers, first.layers, "layers"),
      headNumbers: readNumbers(first.weights.heads, first.heads, "heads"),
      keyTokens,
      queryTokens: keyTokens.slice(first.keys - 1),
      queryOffset: first.keys - 1,
    },
    (layer, head) => {
      const matrix = new Float32Array(steps.length * keyLength);
      steps.forEach(({ block, keys, heads }, row) => {
        const at = (layer * heads + head) * keys;
        matrix.set(block.slice(at, at + keys), row * keyLength);
      });
      return matrix;
    },
  );
}

/** The prompt's tokens (or their numbers), then the text of each step but the last, which nobody has looked at yet. */
function tokensOf(
  prompt: string[] | undefined,
  first: StepRow,
  steps: readonly StepRow[],
  format: TokenFormat,
): readonly Token[] {
  const written = steps.slice(0, -1).map(({ text }) => text);
  // All of the text may have been given already.
  if (prompt && prompt.length >= first.keys + written.length)
    return readTokens(prompt.slice(0, first.keys + written.length), format);
  if (prompt && prompt.length !== first.keys)
    return refuse(
      `there are ${prompt.length} tokens, but the first step looks at ${first.keys}: give the prompt's tokens.`,
    );
  return [
    ...(prompt ? readTokens(prompt, format) : numberedTokens(first.keys)),
    // What a step wrote is text already, whatever the prompt's tokens are written in.
    ...readTokens(written, "text", first.keys),
  ];
}
