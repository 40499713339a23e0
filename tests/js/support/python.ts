/** Python with Hugging Face's safetensors, an independent reader of what is written here. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "@jest/globals";
import { findTestPython } from "../../../bindings/toolchain/find.mjs";

const python = findTestPython() ?? "python3";
const isThere = spawnSync(python, ["-c", "import safetensors.numpy"]).status === 0;

/** A test that is skipped, visibly, where there is no such Python. */
export const testWithPython = (what: string, body: () => void | Promise<void>): void => {
  if (isThere) test(what, body);
  else test.skip(`${what}: needs a Python with safetensors and numpy (LOOKBACK_PYTHON names one)`, body);
};

export interface PythonFile {
  metadata: Record<string, string>;
  tensors: Record<string, { dtype: string; dims: number[]; values: number[] }>;
}

const SCRIPT = `
import json, sys
from safetensors import safe_open
with safe_open(sys.argv[1], "numpy") as file:
    tensors = {name: file.get_tensor(name) for name in file.keys()}
    print(json.dumps({"metadata": file.metadata(), "tensors": {
        name: {"dtype": str(t.dtype), "dims": list(t.shape), "values": t.astype("float64").flatten().tolist()}
        for name, t in tensors.items()}}))
`;

/** What safetensors reads in a file. */
export function readWithPython(file: Uint8Array): PythonFile {
  const folder = mkdtempSync(join(tmpdir(), "lookback-python-"));
  try {
    const path = join(folder, "x.safetensors");
    writeFileSync(path, file);
    return JSON.parse(execFileSync(python, ["-c", SCRIPT, path], { encoding: "utf8", maxBuffer: 2 ** 30 }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
