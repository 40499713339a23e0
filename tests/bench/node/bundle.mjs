/** What a page downloads of an entry of the package, minified and gzipped. */
import { gzipSync } from "node:zlib";
import { build } from "rolldown";

/**
 * Everything that is imported statically counts, each file as a server would send it. The glue and the wasm, which are loaded when an instance
 * is made, are measured apart; `later` names what is loaded only when it is called for.
 * @param {string} input
 */
export async function bundled(input) {
  const { output } = await build({
    input,
    write: false,
    logLevel: "silent",
    platform: "browser",
    external: (id) => id !== input && (id.startsWith("node:") || /^[\w@]|\/wasm\//.test(id)),
    output: { minify: true, format: "esm", chunkFileNames: "[name].js" },
  });
  const chunks = new Map(output.flatMap((chunk) => (chunk.type === "chunk" ? [[chunk.fileName, chunk]] : [])));
  const wanted = new Set([...chunks.values()].flatMap((chunk) => (chunk.isEntry ? [chunk.fileName] : [])));
  // A set that grows while it is walked: what is imported by what is imported.
  for (const name of wanted) for (const next of chunks.get(name)?.imports ?? []) if (chunks.has(next)) wanted.add(next);
  const bytes = [...wanted].reduce((sum, name) => sum + gzipped(chunks.get(name)?.code ?? ""), 0);
  return { bytes, later: [...chunks.keys()].filter((name) => !wanted.has(name)) };
}

/** @param {string | Uint8Array} content */
export const gzipped = (content) => gzipSync(content, { level: 9 }).length;
