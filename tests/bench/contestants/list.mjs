/** Who takes part. To add a contestant: a file that exports `open` (core/types.ts, ContestantModule), and a line here. */

/** @typedef {import("../core/types.ts").Contestant} Contestant */

const variants = /** @type {const} */ (["simd", "relaxed"]);
const computing = /** @type {const} */ (["multiply-add", "attention", "backward", "linear", "layer", "training"]);
const reading = /** @type {const} */ (["read", "decode", "row", "step"]);

/** @type {Contestant[]} */
const ceilings = [
  ...variants.map(
    (variant) =>
      /** @type {Contestant} */ ({
        id: `ceiling-${variant}`,
        role: "ceiling",
        variant,
        kinds: computing,
        browser: true,
        load: () => import("./ceilings.mjs"),
      }),
  ),
  ...variants.map(
    (variant) =>
      /** @type {Contestant} */ ({
        id: `ceiling-${variant}-2`,
        role: "ceiling",
        variant,
        threads: 2,
        kinds: computing,
        load: () => import("./ceilings.mjs"),
      }),
  ),
  {
    id: "bandwidth",
    role: "ceiling",
    variant: "simd",
    kinds: reading,
    browser: true,
    load: () => import("./ceilings.mjs"),
  },
];

/** @type {Contestant[]} */
const ours = [1, 2].flatMap((threads) =>
  variants.map(
    (variant) =>
      /** @type {Contestant} */ ({
        id: `lookback-${variant}${threads > 1 ? `-${threads}` : ""}`,
        role: "ours",
        variant,
        threads,
        browser: true,
        load: () => import("./lookback.mjs"),
      }),
  ),
);

/** @type {Contestant[]} */
const peers = [
  { id: "onnxruntime-web", role: "peer", browser: true, load: () => import("./onnxruntime-web.mjs") },
  { id: "onnxruntime-node", role: "peer", load: () => import("./onnxruntime-node.mjs") },
  { id: "tfjs-wasm", role: "peer", load: () => import("./tfjs.mjs") },
  { id: "jax-js", role: "peer", load: () => import("./jax.mjs") },
  { id: "ruvector", role: "peer", load: () => import("./ruvector.mjs") },
];

export const contestants = [...ceilings, ...ours, ...peers];
