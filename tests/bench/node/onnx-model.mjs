/** ONNX models of the calculations, written with the messages of onnx.proto3 that they need. Weights are inside, as a model's are. */
import protobuf from "protobufjs";
import { floatInput } from "../core/inputs.mjs";

/** @typedef {import("../core/types.ts").Workload} Workload */
/** @typedef {import("../core/types.ts").Inputs} Inputs */
/** @typedef {{ name: string, type?: number, dims: readonly number[] }} Value */
/** @typedef {{ inputs: Value[], outputs: Value[], nodes: object[], constants?: object[] }} Graph */

const { root } = protobuf.parse(`
  syntax = "proto3";
  package onnx;
  message ModelProto {
    int64 ir_version = 1; string producer_name = 2; GraphProto graph = 7; repeated OperatorSetIdProto opset_import = 8;
  }
  message OperatorSetIdProto { string domain = 1; int64 version = 2; }
  message GraphProto {
    repeated NodeProto node = 1; string name = 2; repeated TensorProto initializer = 5; repeated ValueInfoProto input = 11;
    repeated ValueInfoProto output = 12;
  }
  message NodeProto {
    repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4; repeated AttributeProto attribute = 5;
  }
  message AttributeProto {
    enum AttributeType { UNDEFINED = 0; FLOAT = 1; INT = 2; }
    string name = 1; float f = 2; int64 i = 3; AttributeType type = 20;
  }
  message TensorProto { repeated int64 dims = 1; int32 data_type = 2; string name = 8; bytes raw_data = 9; }
  message ValueInfoProto { string name = 1; TypeProto type = 2; }
  message TypeProto { message Tensor { int32 elem_type = 1; TensorShapeProto shape = 2; } Tensor tensor_type = 1; }
  message TensorShapeProto { message Dimension { int64 dim_value = 1; } repeated Dimension dim = 1; }
`);
const ModelProto = root.lookupType("onnx.ModelProto");
const FLOAT = 1;
const INT64 = 7;
const BOOL = 9;

/**
 * @param {Workload} workload
 * @param {Inputs} inputs
 * @returns {Uint8Array}
 */
export function onnxModel(workload, inputs) {
  const { nodes, constants = [], ...values } = graphOf(workload, inputs);
  const model = {
    irVersion: 10,
    producerName: "lookback-bench",
    opsetImport: [{ domain: "", version: 23 }],
    graph: {
      name: workload.kind,
      node: nodes,
      initializer: constants,
      input: values.inputs.map(valueInfo),
      output: values.outputs.map(valueInfo),
    },
  };
  const problem = ModelProto.verify(model);
  if (problem) throw new Error(problem);
  return ModelProto.encode(ModelProto.create(model)).finish();
}

/**
 * @param {Workload} workload
 * @param {Inputs} inputs
 * @returns {Graph}
 */
function graphOf(workload, inputs) {
  switch (workload.kind) {
    case "attention": {
      const { heads, headDim, length, causal, mask, weights } = workload;
      const dims = [1, heads, length, headDim];
      const names = ["queries", "keys", "values"];
      // Weights are the fourth output, after softmax in mode 3.
      const outputs = weights ? ["output", "", "", "weights"] : ["output"];
      return {
        inputs: [
          ...names.map((name) => ({ name, dims })),
          ...(mask ? [{ name: "mask", type: BOOL, dims: [length, length] }] : []),
        ],
        outputs: [
          { name: "output", dims },
          ...(weights ? [{ name: "weights", dims: [1, heads, length, length] }] : []),
        ],
        nodes: [
          node("Attention", [...names, ...(mask ? ["mask"] : [])], outputs, {
            is_causal: causal ? 1 : 0,
            ...(weights && { qk_matmul_output_mode: 3 }),
          }),
        ],
      };
    }
    case "decode": {
      const { heads, headDim, keyLength } = workload;
      const past = [1, heads, keyLength, headDim];
      const query = [1, heads, 1, headDim];
      return {
        inputs: [{ name: "queries", dims: query }],
        outputs: [{ name: "output", dims: query }],
        // One query that sees every key. Keys and values are constants, so that the runtime holds them and no call copies them.
        nodes: [node("Attention", ["queries", "keys", "values"], ["output"], { is_causal: 0 })],
        constants: ["keys", "values"].map((name) => constant(name, floatInput(inputs, name), past)),
      };
    }
    case "linear": {
      const { rows, inputs: width, outputs } = workload;
      return {
        inputs: [{ name: "input", dims: [rows, width] }],
        outputs: [{ name: "output", dims: [rows, outputs] }],
        nodes: [node("Gemm", ["input", "weight", "bias"], ["output"], { transB: 1 })],
        constants: [
          constant("weight", floatInput(inputs, "weight"), [outputs, width]),
          constant("bias", floatInput(inputs, "bias"), [outputs]),
        ],
      };
    }
    case "layer":
      return layerGraph(workload, inputs);
    default:
      throw new Error(`no model of ${workload.kind}`);
  }
}

/**
 * @param {Extract<Workload, { kind: "layer" }>} workload
 * @param {Inputs} inputs
 * @returns {Graph}
 */
function layerGraph({ embedDim, heads, length }, inputs) {
  const dims = [length, embedDim];
  return {
    inputs: [{ name: "input", dims }],
    outputs: [{ name: "output", dims }],
    nodes: [
      node("Gemm", ["input", "inWeight", "inBias"], ["projected"], { transB: 1 }),
      node("Reshape", ["projected", "batched"], ["all"]),
      node("Split", ["all"], ["queries", "keys", "values"], { axis: 2, num_outputs: 3 }),
      node("Attention", ["queries", "keys", "values"], ["attended"], {
        is_causal: 1,
        q_num_heads: heads,
        kv_num_heads: heads,
      }),
      node("Reshape", ["attended", "flat"], ["rows"]),
      node("Gemm", ["rows", "outWeight", "outBias"], ["output"], { transB: 1 }),
    ],
    constants: [
      constant("inWeight", floatInput(inputs, "inWeight"), [3 * embedDim, embedDim]),
      constant("inBias", floatInput(inputs, "inBias"), [3 * embedDim]),
      constant("outWeight", floatInput(inputs, "outWeight"), [embedDim, embedDim]),
      constant("outBias", floatInput(inputs, "outBias"), [embedDim]),
      constant("batched", BigInt64Array.from([1n, BigInt(length), BigInt(3 * embedDim)]), [3]),
      constant("flat", BigInt64Array.from([BigInt(length), BigInt(embedDim)]), [2]),
    ],
  };
}

/**
 * @param {string} opType
 * @param {string[]} input
 * @param {string[]} output
 * @param {Record<string, number>} [attributes]
 */
function node(opType, input, output, attributes = {}) {
  const attribute = Object.entries(attributes).map(([name, i]) => ({ name, i, type: 2 }));
  return { name: `${opType} of ${output[0]}`, opType, input, output, attribute };
}

/**
 * @param {string} name
 * @param {Float32Array | BigInt64Array} data
 * @param {readonly number[]} dims
 */
function constant(name, data, dims) {
  const rawData = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { name, dims, dataType: data instanceof Float32Array ? FLOAT : INT64, rawData };
}

/** @param {Value} value */
function valueInfo({ name, type = FLOAT, dims }) {
  return { name, type: { tensorType: { elemType: type, shape: { dim: dims.map((dimValue) => ({ dimValue })) } } } };
}
