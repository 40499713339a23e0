import { fail } from "./errors.js";
import type { Variant } from "./types.js";

// A probe is a whole module that an engine without the feature refuses. It is validated before anything is fetched: one relaxed opcode
// would make such an engine refuse our whole file.

/** (module (func (param v128) (result v128) body)), a function of few bytes. */
const probe = (...body: number[]): Uint8Array<ArrayBuffer> =>
  Uint8Array.of(
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...[0x01, 0x06, 0x01, 0x60, 0x01, 0x7b, 0x01, 0x7b, 0x03, 0x02, 0x01, 0x00],
    ...[0x0a, body.length + 4, 0x01, body.length + 2, 0x00, ...body, 0x0b],
  );

const LOCAL = [0x20, 0x00];
const SIMD_PROBE = probe(...LOCAL, ...LOCAL, 0xfd, 0xe6, 0x01); // f32x4.mul
const RELAXED_PROBE = probe(...LOCAL, ...LOCAL, ...LOCAL, 0xfd, 0x85, 0x02); // f32x4.relaxed_madd

const SIMD_FLOORS = "Chrome 91, Edge 91, Firefox 89, Safari 16.4, Node 16.4";
const RELAXED_FLOORS = "Chrome 114, Edge 114, Firefox 146, Node 22";

/**
 * Whether the engine's compiler keeps a wide tile in registers. Measured: V8 12.4 (Node 22) spills, V8 13.6 and later do not. Half-precision
 * numbers came in between (V8 13.5, Firefox 129) and tell them apart without running anything.
 */
export const keepsWideTiles = (): boolean => "f16round" in Math;

/** The variant that runs here: the wanted one, or for 'auto' the fastest. Throws where the engine cannot. */
export function chooseVariant(wanted: "auto" | Variant): Variant {
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(SIMD_PROBE)) {
    fail("simd-unsupported", `This engine has no WebAssembly SIMD. lookback needs at least ${SIMD_FLOORS}.`);
  }
  if (wanted === "simd") return "simd";
  const relaxed = WebAssembly.validate(RELAXED_PROBE);
  if (wanted === "relaxed" && !relaxed) {
    fail(
      "relaxed-unsupported",
      `variant 'relaxed' needs relaxed SIMD (${RELAXED_FLOORS}; not Safari). Use variant 'auto' or 'simd' here.`,
    );
  }
  return relaxed ? "relaxed" : "simd";
}
