import { fail } from "./errors.js";
import type { Variant } from "./types.js";

// A probe is a whole module that an engine without the feature refuses. It is validated before anything is fetched: one relaxed opcode
// would make such an engine refuse our whole file.

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const SIGNATURE = [0x01, 0x06, 0x01, 0x60, 0x01, 0x7b, 0x01, 0x7b, 0x03, 0x02, 0x01, 0x00]; // one (func (param v128) (result v128) …)

// (module (func (param v128) (result v128)
//   local.get 0  local.get 0  f32x4.mul))
const SIMD_PROBE = [
  ...HEADER,
  ...SIGNATURE,
  0x0a,
  0x0b,
  0x01,
  0x09,
  0x00,
  0x20,
  0x00,
  0x20,
  0x00,
  0xfd,
  0xe6,
  0x01,
  0x0b,
];

// (module (func (param v128) (result v128)
//   local.get 0  local.get 0  local.get 0  f32x4.relaxed_madd))
const RELAXED_PROBE = [
  ...[...HEADER, ...SIGNATURE, 0x0a, 0x0d, 0x01, 0x0b, 0x00],
  ...[0x20, 0x00, 0x20, 0x00, 0x20, 0x00, 0xfd, 0x85, 0x02, 0x0b],
];

const SIMD_FLOORS = "Chrome 91, Edge 91, Firefox 89, Safari 16.4, Node 16.4";
const RELAXED_FLOORS = "Chrome 114, Edge 114, Firefox 146, Node 22";

const validates = (probe: readonly number[]): boolean => WebAssembly.validate(new Uint8Array(probe));

/** The variant that runs here: the wanted one, or for 'auto' the fastest. Throws where the engine cannot. */
export function chooseVariant(wanted: "auto" | Variant): Variant {
  if (typeof WebAssembly !== "object" || !validates(SIMD_PROBE)) {
    fail("simd-unsupported", `This engine has no WebAssembly SIMD. lookback needs at least ${SIMD_FLOORS}.`);
  }
  if (wanted === "simd") return "simd";
  const relaxed = validates(RELAXED_PROBE);
  if (wanted === "relaxed" && !relaxed) {
    fail(
      "relaxed-unsupported",
      `variant 'relaxed' needs relaxed SIMD (${RELAXED_FLOORS}; not Safari). Use variant 'auto' or 'simd' here.`,
    );
  }
  return relaxed ? "relaxed" : "simd";
}
