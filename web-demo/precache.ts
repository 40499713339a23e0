/** Puts the list of all built files, and their versions, into the service worker. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import type { Plugin } from "vite";

const WORKER = "sw.js";
const PLACE = "self.__WB_MANIFEST";

export function precache(): Plugin {
  let folder = "";
  return {
    name: "precache",
    apply: "build",
    configResolved({ root, build }) {
      folder = resolve(root, build.outDir);
    },
    closeBundle() {
      const script = readFileSync(join(folder, WORKER), "utf8");
      if (script.split(PLACE).length !== 2) throw new Error(`${WORKER} must name ${PLACE} once`);
      if (/^\s*import[\s{"']/m.test(script)) throw new Error(`${WORKER} must be one file, without imports`);
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      const entries = files
        .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
        .filter((url) => url !== WORKER)
        .sort()
        .map((url) => ({ url, revision: versionOf(folder, url) }));
      writeFileSync(
        join(folder, WORKER),
        script.replace(PLACE, () => JSON.stringify(entries)),
      );
    },
  };
}

/** Names under assets/ have a hash of the contents in them already. */
function versionOf(folder: string, url: string): string | null {
  if (url.startsWith("assets/")) return null;
  return createHash("sha256")
    .update(readFileSync(join(folder, url)))
    .digest("hex")
    .slice(0, 16);
}
