/** A model's weights as they arrive, without a decoder: every slot, row by row. */
import type { OpenedModel } from "../../../dist/model/opened.js";
import { slotShape } from "../../../dist/model/slots.js";
import type { WeightRows } from "../../../dist/model/weight-rows.js";

/** [slot.layer] → float32 bits, rows × columns. */
export type Recorded = Map<string, Uint32Array>;

/** Pours all weights of `opened` and closes it. Bits rather than numbers: a NaN is as good as any. */
export async function record(opened: OpenedModel): Promise<Recorded> {
  const slots: Recorded = new Map();
  const write = ({ slot, layer, firstRow, rowCount, type, bytes, from, stride, transposed }: WeightRows) => {
    const [rows, columns] = slotShape(opened.settings, slot)!;
    const key = `${slot}.${layer}`;
    const values = slots.get(key) ?? new Uint32Array(rows * columns);
    slots.set(key, values);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let r = 0; r < rowCount; r++) {
      for (let c = 0; c < (transposed ? rows : columns); c++) {
        const at = from + r * stride + c;
        const bits = type === "F32" ? view.getUint32(4 * at, true) : view.getUint16(2 * at, true) << 16;
        values[transposed ? c * columns + firstRow + r : (firstRow + r) * columns + c] = bits >>> 0;
      }
    }
  };
  try {
    await opened.pour({ write }, () => {});
  } finally {
    await opened.close();
  }
  return slots;
}
