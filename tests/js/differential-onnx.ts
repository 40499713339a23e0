/** ONNX models of a single Attention node (opset 23), and a peer thread that runs them in onnxruntime-web. */
import { Worker } from "node:worker_threads";
import protobuf from "protobufjs";

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
const ELEMENT_TYPES = { float32: 1, bool: 9 } as const;

export interface GraphInput {
  type: keyof typeof ELEMENT_TYPES;
  rank: number;
}

/** Attention's inputs in order; an input that is not given is left empty. */
const INPUT_ORDER = ["Q", "K", "V", "attn_mask"];

export function attentionModel(
  attributes: Record<string, number>,
  inputs: Record<string, GraphInput>,
  withQkMatmul: boolean,
): Uint8Array {
  const value = (name: string, { type, rank }: GraphInput) => ({
    name,
    type: {
      tensorType: {
        elemType: ELEMENT_TYPES[type],
        shape: { dim: Array.from({ length: rank }, (_, d) => ({ dimParam: `${name}_${d}` })) },
      },
    },
  });
  const outputs = withQkMatmul ? ["Y", "", "", "qk_matmul_output"] : ["Y"];
  const ranks: Record<string, number> = { Y: inputs.Q!.rank, qk_matmul_output: 4 };
  const node = {
    name: "attention",
    opType: "Attention",
    input: INPUT_ORDER.filter((name, n) => n < 3 || name in inputs),
    output: outputs,
    attribute: Object.entries(attributes).map(([name, x]) =>
      FLOAT_ATTRIBUTES.has(name) ? { name, f: x, type: 1 } : { name, i: x, type: 2 },
    ),
  };
  const model = {
    irVersion: 10,
    producerName: "lookback-tests",
    opsetImport: [{ domain: "", version: 23 }],
    graph: {
      name: "one attention",
      node: [node],
      input: Object.entries(inputs).map(([name, input]) => value(name, input)),
      output: outputs.filter(Boolean).map((name) => value(name, { type: "float32", rank: ranks[name]! })),
    },
  };
  const problem = ModelProto.verify(model);
  if (problem) throw new Error(problem);
  return ModelProto.encode(ModelProto.create(model)).finish();
}

export interface Feed {
  type: keyof typeof ELEMENT_TYPES;
  data: Float32Array | Uint8Array;
  dims: readonly number[];
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

  attention(
    attributes: Record<string, number>,
    feeds: Record<string, Feed>,
    withQkMatmul: boolean,
  ): Promise<PeerTensors> {
    const inputs = Object.fromEntries(
      Object.entries(feeds).map(([name, { type, dims }]) => [name, { type, rank: dims.length }]),
    );
    const key = JSON.stringify([attributes, inputs, withQkMatmul]);
    if (!this.#models.has(key)) this.#models.set(key, attentionModel(attributes, inputs, withQkMatmul));
    const id = this.#count++;
    const outputs = withQkMatmul ? ["Y", "qk_matmul_output"] : ["Y"];
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, key, model: this.#models.get(key), feeds, outputs });
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
