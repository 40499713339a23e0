/** Serves the checkout to the benchmark's page, with the headers that isolate it, and ONNX models on demand. */
import { createServer } from "node:http";
import sirv from "sirv";
import { root } from "../../../bindings/toolchain/paths.mjs";
import { inputsOf } from "../core/inputs.mjs";
import { onnxModel } from "./onnx-model.mjs";

const HEADERS = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cache-Control": "no-store",
};

/** @returns {Promise<{ url: string, close(): void }>} */
export async function servePage() {
  const files = sirv(root, { dev: true });
  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    if (pathname === "/favicon.ico") return response.writeHead(204).end();
    if (pathname !== "/model") return files(request, response, () => void response.writeHead(404).end());
    const workload = JSON.parse(searchParams.get("workload") ?? "{}");
    response.end(onnxModel(workload, inputsOf(workload)));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}/tests/bench/page/index.html`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
