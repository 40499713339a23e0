/** ONNX models of a single Attention node (opset 23 or 24), and a peer thread that runs them in onnxruntime-web. */
import { Worker } from "node:worker_threads";
import protobuf from "protobufjs";
import type { OnnxCase } from "./onnx-cases.ts";

/** The part of onnx.proto3 that a one-node graph needs, with its field numbers. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  package onnx;
  message ModelProto {
    int64 ir_version = 1; string producer_name = 2; GraphProto graph = 7; repeated OperatorSetIdProto opset_import = 8;
  }
  message OperatorSetIdProto { string domain = 1; int64 version = 2; }
  message GraphProto {
    repeated NodeProto node = 1; string name = 2; repeated ValueInfoProto input = 11; repeated ValueInfoProto output = 12;
  }
  message NodeProto {
    repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4;
    repeated AttributeProto attribute = 5; string domain = 7;
  }
  message AttributeProto {
    enum AttributeType { UNDEFINED = 0; FLOAT = 1; INT = 2; }
    string name = 1; float f = 2; int64 i = 3; AttributeType type = 20;
  }
  message ValueInfoProto { string name = 1; TypeProto type = 2; }
  message TypeProto { message Tensor { int32 elem_type = 1; TensorShapeProto shape = 2; } Tensor tensor_type = 1; }
  message TensorShapeProto { message Dimension { string dim_param = 2; } repeated Dimension dim = 1; }
`);
const ModelProto = root.lookupType("onnx.ModelProto");
const FLOAT_ATTRIBUTES = new Set(["scale", "softcap"]);
const ELEMENT_TYPES = { f32: 1, i64: 7, bool: 9 } as const;

/** A graph of the case's node; inputs and outputs that it does not have are left empty. */
export function attentionModel({ attrs, inputs, outputs, opset, tensors }: OnnxCase): Uint8Array {
  const value = (name: string, elemType: number, rank: number) => ({
    name,
    type: {
      tensorType: { elemType, shape: { dim: Array.from({ length: rank }, (_, d) => ({ dimParam: `${name}_${d}` })) } },
    },
  });
  const node = {
    name: "attention",
    opType: "Attention",
    input: inputs.slice(0, 1 + inputs.reduce((last, name, n) => (name ? n : last), 0)),
    output: outputs,
    attribute: Object.entries(attrs).map(([name, x]) =>
      FLOAT_ATTRIBUTES.has(name) ? { name, f: x, type: 1 } : { name, i: x, type: 2 },
    ),
  };
  const model = {
    irVersion: 10,
    producerName: "lookback-tests",
    opsetImport: [{ domain: "", version: opset }],
    graph: {
      name: "one attention",
      node: [node],
      input: inputs
        .filter(Boolean)
        .map((name) => value(name, ELEMENT_TYPES[tensors[name]!.dtype], tensors[name]!.dims.length)),
      output: outputs
        .filter(Boolean)
        .map((name) => value(name, ELEMENT_TYPES.f32, name === "Y" ? tensors.Q!.dims.length : 4)),
    },
  };
  const problem = ModelProto.verify(model);
  if (problem) throw new Error(problem);
  return ModelProto.encode(ModelProto.create(model)).finish();
}

export type PeerTensors = Record<string, { data: Float32Array; dims: number[] }>;

/** onnxruntime-web in a thread of its own. */
export class OnnxPeer {
  readonly #worker = new Worker(new URL("./differential-onnx.worker.mjs", import.meta.url), { execArgv: [] });
  readonly #models = new Map<string, Uint8Array>();
  readonly #waiting = new Map<number, { resolve: (t: PeerTensors) => void; reject: (e: Error) => void }>();
  #count = 0;

  constructor() {
    this.#worker.on("message", ({ id, tensors, error }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(tensors);
      else waiting?.reject(new Error(error));
    });
    this.#worker.on("error", (error) => {
      for (const { reject } of this.#waiting.values())
        reject(error instanceof Error ? error : new Error(String(error)));
      this.#waiting.clear();
    });
  }

  get graphs(): number {
    return this.#models.size;
  }

  attention(item: OnnxCase): Promise<PeerTensors> {
    const { attrs, inputs, opset, tensors } = item;
    const outputs = item.outputs.filter(Boolean);
    const given = inputs.filter(Boolean);
    const shapes = given.map((name) => [name, tensors[name]!.dtype, tensors[name]!.dims.length]);
    const key = JSON.stringify([attrs, shapes, outputs, opset]);
    if (!this.#models.has(key)) this.#models.set(key, attentionModel(item));
    const feeds = Object.fromEntries(given.map((name) => [name, tensors[name]]));
    const id = this.#count++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, key, model: this.#models.get(key), feeds, outputs });
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
