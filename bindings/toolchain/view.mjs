/** Bundles lookback/view with all that it imports into one file, for pages that have no build step: node bindings/toolchain/view.mjs */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { root } from "./paths.mjs";

/** What tsc made of js/src/view becomes dist/view/view.js. */
export async function bundleView() {
  const bundle = await rolldown({
    input: join(root, "dist/view/index.js"),
    platform: "browser",
    // Of the package itself nothing but its errors is in use: not its wasm, which may not have been built yet.
    external: /[\\/]wasm[\\/]lookback-/,
    resolve: { alias: { lookback: join(root, "dist/web.js") } },
    treeshake: {
      moduleSideEffects: [{ test: /view[\\/]index\.js$/, sideEffects: true }],
      // d3-scale-chromatic makes all its colour scales as it is loaded; two are in use.
      manualPureFunctions: ["colors", "ramp", "ramp$1", "rgb", "cubehelix$1", "interpolateCubehelixLong"],
    },
  });
  await bundle.write({ file: join(root, "dist/view/view.js"), format: "es", minify: true, codeSplitting: false });
  await bundle.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleView();
