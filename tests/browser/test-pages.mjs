/** What the server of the tests has besides the demo: the built package, the tests' own pages and modules, and pages that record their complaints. */
import { existsSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import sirv from "sirv";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs first in a page asked for with ?recorded, for a browser whose protocol does not tell what a page complains about. */
const RECORDER = `<script>
globalThis.complaints = [];
for (const level of ["error", "warn"]) {
  const original = console[level];
  console[level] = (...what) => { complaints.push(what.join(" ")); original.apply(console, what); };
}
addEventListener("error", (event) => complaints.push(event.message || "not loaded: " + (event.target.src || event.target.href)), true);
addEventListener("unhandledrejection", (event) => complaints.push(String(event.reason)));
</script>`;

/**
 * @param {string} folder The demo, built.
 * @param {Record<string, string>} headers
 * @returns {import("vite").Plugin}
 */
export function testPages(folder, headers) {
  const setHeaders = (/** @type {import("node:http").ServerResponse} */ response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  };
  const mounts = { "/package": join(root, "dist"), "/tests": join(root, "tests/browser") };
  return {
    name: "test-pages",
    configurePreviewServer({ middlewares }) {
      middlewares.use((request, response, next) => {
        const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
        const mount = Object.entries(mounts).find(([at]) => pathname.startsWith(`${at}/`));
        const rest = mount ? pathname.slice(mount[0].length) : pathname;
        const path = join(mount?.[1] ?? folder, normalize(rest.replace(/\/$/, "/index.html")));
        if (!searchParams.has("recorded") || !path.endsWith(".html") || !existsSync(path)) return next();
        setHeaders(response);
        response.setHeader("content-type", "text/html; charset=utf-8");
        response.end(readFileSync(path, "utf8").replace(/<head>|(?=<title>)/, `$&${RECORDER}`));
      });
      for (const [at, from] of Object.entries(mounts)) middlewares.use(at, sirv(from, { dev: true, setHeaders }));
    },
  };
}
