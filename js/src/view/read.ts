/** Reads attention in whatever form people have it: lookback's results, transformers.js' attentions, nested arrays of a JSON file. */
import { Attention, type AttentionKind, type HeadVectors } from "./data.js";
import { readNumbers, tokenTexts } from "./names.js";
import { type Block, isObject, isTensor, readNested, readTensor, refuse, show } from "./numbers.js";
import { readSteps } from "./read-steps.js";
import { readVectors } from "./read-vectors.js";
import { numberedTokens, readTokens, TOKEN_FORMATS, type Token, type TokenFormat } from "./tokens.js";

/** A tensor: onnxruntime's, transformers.js', lookback's. */
export interface NumbersTensor {
  readonly data: ArrayLike<number>;
  readonly dims: readonly number[];
}

/** Numbers as a tensor, or as arrays in arrays. */
export type Numbers = NumbersTensor | readonly unknown[];

/** Everything but `weights` may be left out. */
export interface AttentionInput {
  /**
   * [Lq, Lk], [heads, Lq, Lk], [batch, heads, Lq, Lk] or [layers, batch, heads, Lq, Lk] as a tensor; a list of tensors, one per layer
   * (transformers.js, Hugging Face), or of lists of tensors, one per head (`model.attend`); nested arrays [heads][Lq][Lk],
   * [layers][heads][Lq][Lk] or [layers][batch][heads][Lq][Lk].
   */
  readonly weights?: Numbers;
  /** Of the text that looks at itself. Fewer queries than tokens are its last ones. */
  readonly tokens?: readonly unknown[];
  /** Where queries and keys are two texts. */
  readonly queryTokens?: readonly unknown[];
  readonly keyTokens?: readonly unknown[];
  /** Numbers of the layers and heads that `weights` holds; default 0, 1, 2 … */
  readonly layers?: readonly number[];
  readonly heads?: readonly number[];
  /** 'scores' are signed, −∞ where masked. Default: 'scores' where the first head has a negative number. */
  readonly kind?: AttentionKind;
  /** The key that is query row 0's own place in the text; null = another text. Default keys − queries. */
  readonly queryOffset?: number | null;
  /** What was compared: [batch, heads, L, width], [heads, L, width] or [L, heads · width], or a list of these, one per layer. */
  readonly q?: Numbers;
  readonly k?: Numbers;
  readonly v?: Numbers;
  /** Multiplies q · k; default 1/√width. */
  readonly scale?: number;
  /** Steps of `model.generate` with weights, in place of `weights`; `tokens` are then the prompt's. */
  readonly steps?: readonly unknown[];
}

export interface ReadOptions {
  /** Which row of a batch; default 0. */
  readonly batch?: number;
  readonly tokenFormat?: TokenFormat;
}

/** One layer's block, and where in it the heads lie. */
interface Layer {
  readonly heads: number;
  readonly queryLength: number;
  readonly keyLength: number;
  matrix(head: number): Float32Array;
}

export const ACCEPTED =
  "{ weights, tokens }, where weights is a tensor { data, dims } of [heads, Lq, Lk] or [batch, heads, Lq, Lk], a list of them (one per layer), or nested arrays";

/** Other names that people's files have for the same things. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  weights: ["attentions", "attention", "attn"],
  queryTokens: ["left_text", "query_tokens"],
  keyTokens: ["right_text", "key_tokens"],
};

export function readAttention(input: unknown, options: ReadOptions = {}): Attention {
  if (input instanceof Attention) return input;
  const given = named(input);
  const batch = options.batch ?? 0;
  if (!Number.isInteger(batch) || batch < 0)
    refuse(`batch must be the number of a row, from 0 on; received ${show(options.batch)}.`);
  const format = options.tokenFormat ?? "auto";
  if (!TOKEN_FORMATS.includes(format))
    refuse(`the token format must be one of ${TOKEN_FORMATS.join(", ")}; received ${show(format)}.`);
  if (given.steps !== undefined) return readSteps(given, batch, format);
  const layers = readLayers(given.weights, batch);
  const [first] = layers;
  if (!first) return refuse(`weights hold no layer. Accepted: ${ACCEPTED}.`);
  layers.forEach((layer, index) => {
    for (const size of ["heads", "queryLength", "keyLength"] as const)
      if (layer[size] !== first[size])
        refuse(
          `layer ${index} has ${size} ${layer[size]}, but layer 0 has ${first[size]}: all layers must have one shape.`,
        );
  });
  const names = readNames(given, first.queryLength, first.keyLength, batch, format);
  const vectors = readVectors(given, { ...first, layers: layers.length, batch });
  return new Attention(
    {
      kind: given.kind ?? guessKind(first.matrix(0)),
      layers: layers.length,
      heads: first.heads,
      queryLength: first.queryLength,
      keyLength: first.keyLength,
      layerNumbers: readNumbers(given.layers, layers.length, "layers"),
      headNumbers: readNumbers(given.heads, first.heads, "heads"),
      ...names,
    },
    (layer, head) => layers[layer]!.matrix(head),
    vectors as ((layer: number, head: number) => HeadVectors | null) | undefined,
  );
}

/** The input under our names; bare numbers are weights. */
function named(input: unknown): AttentionInput {
  if (input === null || input === undefined) return refuse(`there is no attention to show. Accepted: ${ACCEPTED}.`);
  if (!isObject(input)) return refuse(`attention must be ${ACCEPTED}; received ${show(input)}.`);
  if (isTensor(input) || Array.isArray(input)) {
    const steps = Array.isArray(input) && isObject(input[0]) && isObject((input[0] as { weights?: unknown }).weights);
    return (steps && !isTensor(input[0]) ? { steps: input } : { weights: input }) as AttentionInput;
  }
  const given: Record<string, unknown> = { ...input };
  for (const [name, others] of Object.entries(ALIASES))
    for (const other of others) if (given[name] === undefined && given[other] !== undefined) given[name] = given[other];
  const { kind } = given;
  if (kind !== undefined && kind !== "weights" && kind !== "scores")
    refuse(`kind must be "weights" or "scores"; received ${show(kind)}.`);
  if (given.weights === undefined && given.steps === undefined)
    refuse(`there are no weights in ${show(input)}. Accepted: ${ACCEPTED}.`);
  // A step of a generation: { layers, heads, tensor }.
  if (isObject(given.weights) && isTensor(given.weights.tensor))
    return { ...given, steps: [{ weights: given.weights }] };
  return given as AttentionInput;
}

function readLayers(weights: unknown, batch: number): Layer[] {
  if (isTensor(weights)) return layersOf(readTensor(weights, "weights"), batch, "tensor");
  if (!Array.isArray(weights) && !ArrayBuffer.isView(weights))
    return refuse(`weights must be a tensor or a list; received ${show(weights)}. Accepted: ${ACCEPTED}.`);
  const list = weights as readonly unknown[];
  if (list.length === 0) return refuse(`weights are an empty list. Accepted: ${ACCEPTED}.`);
  if (isTensor(list[0]))
    return list.map((layer, index) => {
      const where = `weights[${index}]`;
      if (!isTensor(layer)) return refuse(`${where} must be a tensor, as weights[0] is; received ${show(layer)}.`);
      const [only, more] = layersOf(readTensor(layer, where), batch, "tensor");
      if (!only || more)
        return refuse(`${where} must be one layer, [batch, heads, Lq, Lk]; received dims [${layer.dims}].`);
      return only;
    });
  if (Array.isArray(list[0]) && isTensor(list[0][0]))
    return list.map((heads, index) => headsOf(heads, `weights[${index}]`));
  return layersOf(readNested(weights, "weights"), batch, "nested");
}

/** A layer as a list of its heads' matrices. */
function headsOf(heads: unknown, where: string): Layer {
  if (!Array.isArray(heads))
    return refuse(`${where} must be a list of tensors, one per head; received ${show(heads)}.`);
  const blocks = heads.map((head, index) => {
    if (!isTensor(head)) return refuse(`${where}[${index}] must be a tensor; received ${show(head)}.`);
    const block = readTensor(head, `${where}[${index}]`);
    return block.dims.length === 2
      ? block
      : refuse(`${where}[${index}] must be [Lq, Lk]; received dims [${block.dims.join(", ")}].`);
  });
  const [queryLength = 0, keyLength = 0] = blocks[0]?.dims ?? [];
  blocks.forEach(({ dims }, index) => {
    if (dims[0] !== queryLength || dims[1] !== keyLength)
      refuse(`${where}[${index}] has dims [${dims.join(", ")}], but ${where}[0] has [${queryLength}, ${keyLength}].`);
  });
  return checked({
    heads: blocks.length,
    queryLength,
    keyLength,
    matrix: (head) => blocks[head]!.slice(0, queryLength * keyLength),
  });
}

function layersOf(block: Block, batch: number, form: "tensor" | "nested"): Layer[] {
  const { dims } = block;
  if (dims.length < 2 || dims.length > 5)
    return refuse(
      `weights must have 2 to 5 dimensions, the last two [queries, keys]; received ${form === "tensor" ? "dims" : "arrays of"} [${dims.join(", ")}].`,
    );
  const [queryLength, keyLength] = dims.slice(-2) as [number, number];
  const heads = dims.at(-3) ?? 1;
  // Four levels of arrays are layers of heads; four dims of a tensor are a batch of them.
  const [layers, rows] =
    dims.length === 5
      ? [dims[0]!, dims[1]!]
      : dims.length < 4
        ? [1, 1]
        : form === "nested"
          ? [dims[0]!, 1]
          : [1, dims[0]!];
  if (batch >= rows)
    refuse(
      `batch ${batch} does not exist: weights [${dims.join(", ")}] have ${rows} batch row${rows === 1 ? "" : "s"}.`,
    );
  const size = queryLength * keyLength;
  return Array.from({ length: layers }, (_, layer) =>
    checked({
      heads,
      queryLength,
      keyLength,
      matrix: (head) => {
        const at = ((layer * rows + batch) * heads + head) * size;
        return block.slice(at, at + size);
      },
    }),
  );
}

function checked(layer: Layer): Layer {
  const { heads, queryLength, keyLength } = layer;
  if (heads === 0 || queryLength === 0 || keyLength === 0)
    refuse(`weights are empty: ${heads} heads, ${queryLength} queries, ${keyLength} keys.`);
  return layer;
}

/** So many numbers are looked at, evenly spread; scores are negative in about every second place. */
const LOOKS = 2 ** 15;

function guessKind(matrix: Float32Array): AttentionKind {
  // An odd step meets every column.
  const step = matrix.length <= LOOKS ? 1 : Math.floor(matrix.length / LOOKS) | 1;
  for (let i = 0; i < matrix.length; i += step) if (matrix[i]! < 0) return "scores";
  return "weights";
}

type Names = Pick<Attention, "queryTokens" | "keyTokens" | "queryOffset">;

function readNames(given: AttentionInput, queries: number, keys: number, batch: number, format: TokenFormat): Names {
  const own = tokenTexts(given.tokens, "tokens", batch);
  const queryTexts = tokenTexts(given.queryTokens, "queryTokens", batch);
  const keyTexts = tokenTexts(given.keyTokens, "keyTokens", batch);
  const two = queryTexts !== undefined && keyTexts !== undefined && queryTexts.join("\0") !== keyTexts.join("\0");
  const { queryOffset = two || queries > keys ? null : keys - queries } = given;
  if (queryOffset !== null && !Number.isInteger(queryOffset))
    refuse(`queryOffset must be a whole number, or null for another text; received ${show(queryOffset)}.`);
  const first = queryOffset ?? 0;
  const keyTokens = fitted(keyTexts ?? own, "keys", keys, format) ?? numberedTokens(keys);
  const ofOwn = (): readonly Token[] | undefined => {
    if (own && own.length === queries && queries !== keys && keyTexts) return readTokens(own, format, first);
    // Queries that are the text's last tokens, as with a cache.
    return own && queryOffset !== null && keyTokens.length >= first + queries
      ? keyTokens.slice(first, first + queries)
      : undefined;
  };
  const queryTokens = queryTexts
    ? fitted(queryTexts, "queries", queries, format, first)
    : (ofOwn() ?? (own ? undefined : numberedTokens(queries, first)));
  return { queryTokens: queryTokens ?? numberedTokens(queries, first), keyTokens, queryOffset };
}

function fitted(
  texts: string[] | undefined,
  what: "queries" | "keys",
  length: number,
  format: TokenFormat,
  first = 0,
): Token[] | undefined {
  if (!texts) return undefined;
  if (texts.length !== length)
    refuse(`there are ${texts.length} tokens for ${length} ${what}: weights and tokens do not belong together.`);
  return readTokens(texts, format, first);
}
