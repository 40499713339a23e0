/** Bundles lookback/view with all that it imports into one file, for pages that have no build step: node bindings/toolchain/view.mjs */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { root } from "./paths.mjs";

/**
 * d3-scale-chromatic makes all its colour scales as it is loaded: marks the calls that make them as free of effects, so that those which
 * nobody uses are left out.
 * @param {string} code
 * @param {string} id
 */
function markScales(code, id) {
  if (!/[\\/]d3-scale-chromatic[\\/]/.test(id)) return null;
  const marked = code.replace(
    /(?<=[=(] ?)(ramp(?:\$1)?|colors|cubehelix\$1|interpolateCubehelixLong)\(/g,
    "/* @__PURE__ */ $1(",
  );
  return { code: marked, map: null };
}

/**
 * d3-color knows the 148 colours of CSS by their names; the elements give it numbers and #rrggbb alone, so the list is left out.
 * @param {string} code
 * @param {string} id
 */
function dropNames(code, id) {
  if (!/[\\/]d3-color[\\/]/.test(id)) return null;
  return { code: code.replace(/(?<=\bnamed = )\{[^}]*\}/, "{}"), map: null };
}

/** What tsc made of js/src/view becomes dist/view/view.js. */
export async function bundleView() {
  const bundle = await rolldown({
    input: join(root, "dist/view/index.js"),
    platform: "browser",
    // Of the package itself nothing but its errors is in use: not its wasm, which may not have been built yet.
    external: /[\\/]wasm[\\/]lookback-/,
    resolve: { alias: { lookback: join(root, "dist/web.js") } },
    treeshake: { moduleSideEffects: [{ test: /view[\\/]index\.js$/, sideEffects: true }] },
    plugins: [
      { name: "unused-colour-scales", transform: markScales },
      { name: "unused-colour-names", transform: dropNames },
    ],
  });
  await bundle.write({ file: join(root, "dist/view/view.js"), format: "es", minify: true, codeSplitting: false });
  await bundle.close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleView();
