import { fail, shape } from "../errors.js";
import { type Block, checkBytes, type Heap, Job } from "../heap.js";
import type { RawDecoderConfig } from "../module-decoder.js";
import { Owned } from "../owned.js";
import { NO_ROTARY, readEmbedding } from "../rotary.js";
import { DecoderSession, type SessionConfig } from "./session.js";
import type { DecoderSettings } from "./settings.js";
import { isLayerSlot, SLOTS, type Slot, slotShape, slotsOf } from "./slots.js";
import { FLOAT_BYTES, FLOAT_TYPES, type WeightRows } from "./weight-rows.js";

const NORMS = ["layer", "rms"];
const ACTIVATIONS = ["gelu_tanh", "gelu_erf", "silu"];

const DTYPES = ["f32", "f16", "bf16", "int8"] as const;

/** What matrices are stored as: see LinearConfig. */
export interface WeightFormat {
  dtype: (typeof DTYPES)[number];
  /** For int8: inputs that share a scale. Transposed tensors are then written a whole group of rows at a time. */
  group?: number;
}

const toRaw = (settings: DecoderSettings, { dtype, group = 64 }: WeightFormat): RawDecoderConfig => ({
  ...settings,
  norm: NORMS.indexOf(settings.norm),
  activation: ACTIVATIONS.indexOf(settings.activation),
  rotary: settings.rotary ? readEmbedding(settings.rotary, settings.headDim, "decoder: rotary") : NO_ROTARY,
  weightType: DTYPES.indexOf(dtype),
  weightGroup: group,
});

/** The weights of a decoder, in wasm memory: made empty, filled by write(), used by sessions. */
export class Decoder extends Owned {
  readonly settings: Readonly<DecoderSettings>;
  readonly heap: Heap;
  /** Elements of each tensor that are still to be written. */
  readonly #unwritten = new Map<string, number>();

  constructor(heap: Heap, settings: DecoderSettings, format: WeightFormat = { dtype: "f32" }) {
    super(heap, "The model");
    this.heap = heap;
    this.settings = Object.freeze({ ...settings });
    const config = toRaw(settings, format);
    const bytes = heap.raw.decoderBytes(config);
    checkBytes(bytes, "The model's weights");
    const block = heap.own(this, bytes, "the model's weights");
    const status = heap.raw.decoderCreate(config, block.address);
    if (status) {
      heap.release(block);
      fail("bad-option", `decoder: ${heap.raw.statusMessage(status)}.`);
    }
    this.hold(block);
    for (const slot of slotsOf(settings)) {
      const [rows, columns] = slotShape(settings, slot)!;
      for (let layer = 0; layer < (isLayerSlot(slot) ? settings.layers : 1); layer++)
        this.#unwritten.set(label(slot, layer), rows * columns);
    }
  }

  /** Bytes of its weights. */
  get bytes(): number {
    return this.block().bytes;
  }

  /** The tensors of which something has not been written yet. */
  missing(): string[] {
    return [...this.#unwritten].filter(([, elements]) => elements > 0).map(([name]) => name);
  }

  /** Converts and packs some rows of a tensor. */
  write({ slot, layer, firstRow, rowCount, type, bytes, from, stride, transposed }: WeightRows): void {
    const block = this.block();
    const own = slotShape(this.settings, slot);
    const name = label(slot, layer);
    if (!own || !this.#unwritten.has(name)) fail("state-unknown", `This decoder has no ${name}.`);
    const [rows, width] = transposed ? [own[1], own[0]] : own;
    const size = FLOAT_BYTES[type];
    const end = (from + (rowCount - 1) * stride + width) * size;
    if (firstRow < 0 || firstRow + rowCount > rows || stride < width || (rowCount > 0 && end > bytes.length)) {
      fail(
        "state-shape",
        `${name} ${shape(own)}${transposed ? " (transposed)" : ""} has no place for rows ${firstRow} to ${firstRow + rowCount - 1} of ` +
          `${width} elements, from element ${from} of ${bytes.length / size} with a stride of ${stride}.`,
      );
    }
    if (rowCount < 1) return;
    const job = new Job(this.heap, "write");
    const source = job.input(bytes.subarray(from * size, end));
    job.run(undefined, (raw, at) =>
      raw.decoderWrite(block.address, {
        slot: SLOTS.indexOf(slot),
        layer,
        firstRow,
        rowCount,
        source: at(source),
        type: FLOAT_TYPES.indexOf(type),
        sourceStride: stride,
        transposed,
      }),
    );
    this.#unwritten.set(name, Math.max(0, this.#unwritten.get(name)! - rowCount * width));
  }

  /** Caches and scratch memory for a batch of sequences. */
  session(config: SessionConfig): DecoderSession {
    return new DecoderSession(this, config);
  }

  /** Its memory, while it lives. */
  weights(): Block {
    return this.block();
  }
}

const label = (slot: Slot, layer: number): string => (isLayerSlot(slot) ? `${slot} of layer ${layer}` : slot);
