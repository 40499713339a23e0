import type { Decoder } from "../model/decoder.js";
import { isLayerSlot, SLOTS, type Slot, slotShape, slotsOf } from "../model/slots.js";
import { isVector } from "../model/tensor-names.js";
import { halvesOf, hash32, normals } from "./random.js";

const DEVIATION = 0.02;
/** What is added to the stream that passes through all layers. */
const RESIDUAL: readonly Slot[] = ["outputWeight", "downWeight"];

/**
 * The first weights, as GPT-2's (Radford et al. 2019): matrices from a normal distribution of deviation 0.02, what is added to the residual
 * stream of that over √(2·layers), norms 1, biases 0. Each tensor depends on the seed and its own place.
 */
export function initialise(decoder: Decoder, seed: number): void {
  const { settings } = decoder;
  for (const slot of slotsOf(settings)) {
    const [rows, columns] = slotShape(settings, slot)!;
    for (let layer = 0; layer < (isLayerSlot(slot) ? settings.layers : 1); layer++) {
      const values = initialValues(slot, rows * columns, settings.layers, [
        ...halvesOf(seed),
        SLOTS.indexOf(slot),
        layer,
      ]);
      const bytes = new Uint8Array(values.buffer);
      const place = { slot, layer, firstRow: 0, rowCount: rows };
      decoder.write({ ...place, type: "F32", bytes, from: 0, stride: columns, transposed: false });
    }
  }
}

function initialValues(slot: Slot, length: number, layers: number, place: readonly number[]): Float32Array {
  const values = new Float32Array(length);
  if (isVector(slot)) return /NormWeight$/.test(slot) ? values.fill(1) : values;
  const draw = normals(hash32(...place));
  const deviation = RESIDUAL.includes(slot) ? DEVIATION / Math.sqrt(2 * layers) : DEVIATION;
  for (let i = 0; i < length; i++) values[i] = deviation * draw();
  return values;
}
