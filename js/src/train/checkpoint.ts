/** A run as one safetensors file: weights and moments by their slots, everything else as JSON in its metadata. */
import { fail, kindOf, messageOf, refuse, shape } from "../errors.js";
import { MemoryReader } from "../model/bytes.js";
import { quoted, readHeader } from "../model/safetensors.js";
import type { DecoderSettings } from "../model/settings.js";
import { isLayerSlot, type Slot, slotShape, slotsOf } from "../model/slots.js";
import { parseObject } from "../model/sources.js";
import type { Lookback } from "../types.js";
import { writeSafetensors } from "./safetensors-writer.js";
import type { MadeTokenizer } from "./tokenizer-files.js";
import type { FullTrainerConfig } from "./types.js";

const FORMAT = "lookback-trainer-1";

/** What the bits of a run depend on, besides its config and its text (R15). */
export type Engine = Pick<Lookback, "variant" | "fused">;

/** What a run is besides its numbers. Windows and dropout are drawn by seed and step, so there is no other state of a generator. */
export interface RunState {
  readonly config: FullTrainerConfig;
  /** Steps made. */
  readonly step: number;
  readonly tokenizer: MadeTokenizer;
  readonly fingerprint: string;
  readonly trainTokens: number;
  readonly validationTokens: number;
  /** What saved it; not there in checkpoints of before it was noted. */
  readonly engine?: Engine & { readonly version: string };
}

/** Whether the bits go on as they were, as far as is known. */
export const isSameEngine = ({ engine }: RunState, { variant, fused }: Engine): boolean =>
  engine === undefined || (engine.variant === variant && engine.fused === fused);

export const engineText = ({ variant, fused }: Engine): string =>
  `variant '${variant}'${variant === "relaxed" ? ` with ${fused ? "fused" : "unfused"} multiply-add` : ""}`;

export const PARTS = ["weights", "firstMoments", "secondMoments"] as const;
export type SavedPart = (typeof PARTS)[number];

/** One tensor of a run. */
export interface Place {
  readonly part: SavedPart;
  readonly slot: Slot;
  readonly layer: number;
}

const nameOf = ({ part, slot, layer }: Place): string => `${part}.${isLayerSlot(slot) ? `${layer}.` : ""}${slot}`;

export const placesOf = (settings: DecoderSettings): Place[] =>
  PARTS.flatMap((part) =>
    slotsOf(settings).flatMap((slot) =>
      Array.from({ length: isLayerSlot(slot) ? settings.layers : 1 }, (_, layer) => ({ part, slot, layer })),
    ),
  );

export function writeCheckpoint(
  state: RunState,
  settings: DecoderSettings,
  read: (place: Place) => Float32Array,
): Uint8Array<ArrayBuffer> {
  const tensors = placesOf(settings).map((place) => ({
    name: nameOf(place),
    dims: slotShape(settings, place.slot)!,
    values: () => read(place),
  }));
  return writeSafetensors(tensors, "F32", { format: FORMAT, state: JSON.stringify(state) });
}

export interface OpenedCheckpoint {
  readonly state: RunState;
  /** Gives each tensor of a model with these settings, all of them or none. */
  pour(settings: DecoderSettings, write: (place: Place, values: Float32Array) => void): Promise<void>;
}

export async function openCheckpoint(given: unknown): Promise<OpenedCheckpoint> {
  const bytes = bytesOf(given);
  const where = "The checkpoint";
  const entries = await readHeader(new MemoryReader(where, bytes, undefined)).catch((error: unknown) =>
    fail("invalid-checkpoint", messageOf(error), error),
  );
  const headerBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = parseObject(bytes.subarray(8, 8 + headerBytes), where);
  const { format, state } = (header.__metadata__ ?? {}) as { format?: unknown; state?: unknown };
  if (format !== FORMAT || typeof state !== "string")
    return fail(
      "invalid-checkpoint",
      `${where} is not one of a trainer: its format is ${quoted(String(format))}, not "${FORMAT}".`,
    );
  const named = new Map(entries.map((entry) => [entry.name, entry]));
  return {
    state: parseObject(new TextEncoder().encode(state), `${where}'s state`) as unknown as RunState,
    async pour(settings, write) {
      const found = placesOf(settings).map((place) => {
        const dims = slotShape(settings, place.slot)!;
        const entry = named.get(nameOf(place));
        if (entry?.dtype !== "F32" || shape(entry.dims) !== shape(dims))
          return fail("invalid-checkpoint", `${where} has no ${quoted(nameOf(place))} ${shape(dims)} of type F32.`);
        return { place, entry };
      });
      for (const { place, entry } of found) {
        const from = bytes.byteOffset + 8 + headerBytes + entry.begin;
        write(place, new Float32Array(bytes.buffer.slice(from, from + entry.end - entry.begin)));
      }
    },
  };
}

function bytesOf(given: unknown): Uint8Array {
  if (ArrayBuffer.isView(given)) return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  if (kindOf(given) === "ArrayBuffer") return new Uint8Array(given as ArrayBuffer);
  return refuse("bad-option", "trainer: checkpoint", "an ArrayBuffer or a typed array: what save() gave", given);
}
