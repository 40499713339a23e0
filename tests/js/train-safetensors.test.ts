/** The files that a trainer writes, against the published rules of the format and by an independent reading. */
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { createLookback, type Lookback } from "lookback";
import { MemoryReader } from "../../dist/model/bytes.js";
import { readHeader } from "../../dist/model/safetensors.js";
import { halfBits } from "../../dist/train/half.js";
import { writeSafetensors } from "../../dist/train/safetensors-writer.js";
import { tinyRun } from "./support/corpora.ts";
import { caught, expectError } from "./support/helpers.js";
import { type PythonFile, readWithPython, testWithPython } from "./support/python.ts";
import { halfValue } from "./support/safetensors.ts";

const tensor = (name: string, dims: readonly number[], first: number) => ({
  name,
  dims,
  values: () => Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, n) => first + n / 4),
});
const TENSORS = [
  tensor("b.weight", [2, 3], 1),
  tensor("a.bias", [3], -5),
  tensor("h.10.x", [1], 7),
  tensor("h.2.x", [1], 8),
  tensor("empty", [0, 4], 0),
];

jest.setTimeout(120_000); // a model learns in it, and Python starts, on whatever machine

/** As the format's description says it, without this package's reader. */
function naiveRead(file: Uint8Array) {
  const view = new DataView(file.buffer);
  const length = Number(view.getBigUint64(0, true));
  const text = new TextDecoder().decode(file.subarray(8, 8 + length));
  return { length, text, header: JSON.parse(text), data: file.subarray(8 + length) };
}

describe.each(["F32", "F16"] as const)("%s", (type) => {
  const file = writeSafetensors(TENSORS, type, { format: "pt", note: "ü" });
  const { length, text, header, data } = naiveRead(file);
  const size = type === "F32" ? 4 : 2;

  test("the data begins at a multiple of 8 bytes, behind spaces; the header begins with {", () => {
    expect((8 + length) % 8).toBe(0);
    expect(text).toMatch(/^\{"__metadata__":\{"format":"pt","note":"ü"\},.*\} {0,7}$/);
  });

  test("tensors are sorted by name and cover the data without gaps", () => {
    const names = Object.keys(header).filter((name) => name !== "__metadata__");
    expect(names).toEqual(["a.bias", "b.weight", "empty", "h.10.x", "h.2.x"]);
    let at = 0;
    for (const name of names) {
      const { dtype, shape, data_offsets: offsets } = header[name];
      expect([dtype, offsets[0]]).toEqual([type, at]);
      at = offsets[1];
      expect(at - offsets[0]).toBe(size * shape.reduce((a: number, b: number) => a * b, 1));
    }
    expect(at).toBe(data.length);
  });

  test("values are little-endian, each tensor's in its place", () => {
    const view = new DataView(data.buffer, data.byteOffset);
    for (const { name, values } of TENSORS) {
      const [begin] = header[name].data_offsets;
      for (const [n, value] of values().entries()) {
        if (type === "F32") expect(view.getFloat32(begin + 4 * n, true)).toBe(value);
        else expect(view.getUint16(begin + 2 * n, true)).toBe(halfBits(value));
      }
    }
  });

  test("this package's reader takes it", async () => {
    const entries = await readHeader(new MemoryReader("x", file, undefined));
    expect(entries.map(({ name, dims }) => [name, dims])).toEqual(
      [...TENSORS].sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ name, dims }) => [name, dims]),
    );
  });

  testWithPython("Python's safetensors reads the same numbers", () => {
    const { metadata, tensors } = readWithPython(file);
    expect(metadata).toEqual({ format: "pt", note: "ü" });
    for (const { name, dims, values } of TENSORS) expect(tensors[name]).toMatchObject({ dims, values: [...values()] });
  });
});

describe("of a model that has learnt", () => {
  let lb: Lookback;
  let files: Record<"f16" | "f32" | "checkpoint", Uint8Array>;
  beforeAll(async () => {
    lb = await createLookback();
    const trainer = await lb.trainer(tinyRun({ steps: 3 }));
    for await (const _ of trainer.run());
    const exported = async (dtype: "f16" | "f32") => {
      const file = (await trainer.export({ dtype })).find(({ name }) => name === "model.safetensors")!;
      return new Uint8Array(await file.arrayBuffer());
    };
    files = { f16: await exported("f16"), f32: await exported("f32"), checkpoint: await trainer.save() };
  });
  afterAll(() => lb.dispose());

  const types = { f16: "float16", f32: "float32", checkpoint: "float32" };
  for (const name of ["f16", "f32", "checkpoint"] as const)
    testWithPython(`Python's safetensors reads the same numbers: ${name}`, () => {
      const { header, data } = naiveRead(files[name]);
      const { __metadata__: metadata, ...tensors } = header;
      const read = readWithPython(files[name]);
      expect(read.metadata).toEqual(metadata);
      expect(Object.keys(read.tensors).sort()).toEqual(Object.keys(tensors).sort());
      for (const [tensor, { dtype, dims, values }] of Object.entries(read.tensors)) {
        const bytes = data.slice(...(tensors[tensor].data_offsets as [number, number])).buffer;
        const written = name === "f16" ? Array.from(new Uint16Array(bytes), halfValue) : [...new Float32Array(bytes)];
        expect({ dtype, dims, values }).toEqual({ dtype: types[name], dims: tensors[tensor].shape, values: written });
      }
    });

  testWithPython(
    "Python reads the trainer's weights in its exports, rounded or not, by the names of transformers",
    () => {
      const [half, full, { tensors: saved, metadata }] = [files.f16, files.f32, files.checkpoint].map(
        readWithPython,
      ) as [PythonFile, PythonFile, PythonFile];
      expect(JSON.parse(metadata.state!)).toMatchObject({ step: 3 });
      expect(saved["firstMoments.tokenEmbedding"]!.values.some((moment) => moment !== 0)).toBe(true);
      expect(full.tensors["transformer.wte.weight"]).toEqual(saved["weights.tokenEmbedding"]);
      const width = 32;
      const queries = full.tensors["transformer.h.1.attn.c_attn.weight"]!; // [in, out of q, k and v]
      expect(queries.dims).toEqual([width, 3 * width]);
      const { values } = saved["weights.1.queryWeight"]!;
      const turned = values.map((_, at) => queries.values[(at % width) * 3 * width + Math.floor(at / width)]);
      expect(turned).toEqual(values);
      for (const [name, { dims, values }] of Object.entries(full.tensors)) {
        const rounded = values.map((value) => halfValue(halfBits(value)));
        expect(half.tensors[name]).toEqual({ dtype: "float16", dims, values: rounded });
      }
    },
  );
});

describe("half precision", () => {
  test("every finite half is itself", () => {
    const finite = Array.from({ length: 65536 }, (_, bits) => bits).filter((bits) => ((bits >> 10) & 31) < 31);
    expect(finite.filter((bits) => halfBits(halfValue(bits)) !== bits)).toEqual([]);
  });

  test("between two neighbours the nearer one is taken, and in the middle the even one", () => {
    for (let bits = 0; bits < 0x7bff; bits += 7) {
      const [low, high] = [halfValue(bits), halfValue(bits + 1)];
      const middle = (low + high) / 2;
      const step = (high - low) / 256;
      expect(halfBits(middle - step)).toBe(bits);
      expect(halfBits(middle + step)).toBe(bits + 1);
      expect(halfBits(middle)).toBe(bits % 2 === 0 ? bits : bits + 1);
      expect(halfBits(-middle)).toBe(0x8000 | halfBits(middle));
    }
  });

  test("what is too large is infinite, and NaN stays NaN", () => {
    expect([65519, 65520, 1e9, Infinity].map(halfBits)).toEqual([0x7bff, 0x7c00, 0x7c00, 0x7c00]);
    expect(halfBits(-Infinity)).toBe(0xfc00);
    expect(halfBits(Number.NaN) & 0x7fff).toBeGreaterThan(0x7c00);
  });

  test("a weight that it cannot hold is refused by its name", () => {
    const write = () => writeSafetensors([tensor("w", [2], 1e6)], "F16", {});
    expectError(caught(write), "bad-values", "w holds 1000000", "65504", "'f32'");
  });
});
