import { type ByteReader, CHUNK_BYTES } from "./bytes.js";
import type { DecoderSettings } from "./settings.js";
import { slotShape } from "./slots.js";
import type { WantedTensor } from "./tensor-names.js";
import { FLOAT_BYTES, type FloatType, type WeightRows } from "./weight-rows.js";

/** Where weights go: the decoder. */
export interface WeightSink {
  write(rows: WeightRows): void;
}

export interface Progress {
  /** The file that is being read. */
  readonly file: string;
  /** Bytes of all weights, and how many have been read. */
  readonly loaded: number;
  readonly total: number;
}

/** Counts bytes as they are read; reading goes on when it has returned. */
export type Tally = (file: string, bytes: number) => Promise<void> | void;

/** Inputs that share a scale where weights are int8. */
export const GROUP = 64;

/** Reads a tensor, which comes next, in pieces of whole rows, and writes each where it belongs. */
export async function pourTensor(
  reader: ByteReader,
  { dims, transposed, destinations }: WantedTensor,
  type: FloatType,
  settings: DecoderSettings,
  sink: WeightSink,
  tally: Tally,
): Promise<void> {
  const [rows, columns] = [dims[0]!, dims[1] ?? 1];
  const rowBytes = columns * FLOAT_BYTES[type];
  // Transposed rows go by whole groups, of which int8 weights share a scale.
  const unit = transposed ? GROUP : 1;
  const atOnce = unit * Math.max(1, Math.floor(CHUNK_BYTES / (rowBytes * unit)));
  for (let first = 0; first < rows; first += atOnce) {
    const count = Math.min(atOnce, rows - first);
    const bytes = await reader.read(count * rowBytes);
    const piece = { type, bytes, stride: columns, transposed };
    for (const { slot, layer, from } of destinations) {
      if (transposed) {
        sink.write({ ...piece, slot, layer, firstRow: first, rowCount: count, from });
        continue;
      }
      const begin = Math.max(first, from);
      const end = Math.min(first + count, from + slotShape(settings, slot)![0]);
      if (begin >= end) continue;
      const part = { firstRow: begin - from, rowCount: end - begin, from: (begin - first) * columns };
      sink.write({ ...piece, slot, layer, ...part });
    }
    await tally(reader.name, bytes.length);
  }
}
