/** What a trainer's checkpoint says besides its numbers: JSON in the metadata of a safetensors file. */
import { withHeader } from "./safetensors.ts";

interface State {
  step: number;
  engine?: { variant: string; fused: boolean; version: string };
}

function parts(file: Uint8Array): { header: { __metadata__: { state: string } }; data: Uint8Array } {
  const length = new DataView(file.buffer, file.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length)));
  return { header, data: file.subarray(8 + length) };
}

export const stateOf = (file: Uint8Array): State => JSON.parse(parts(file).header.__metadata__.state);

/** The same checkpoint as another engine would have saved it; undefined: one that notes none. */
export function savedBy(engine: Partial<State["engine"]> | undefined, file: Uint8Array): Uint8Array<ArrayBuffer> {
  const { header, data } = parts(file);
  const { engine: own, ...rest } = stateOf(file);
  header.__metadata__.state = JSON.stringify(engine ? { ...rest, engine: { ...own, ...engine } } : rest);
  const text = JSON.stringify(header);
  return withHeader(text + " ".repeat((8 - (new TextEncoder().encode(text).length % 8)) % 8), data);
}
