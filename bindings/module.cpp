// Registers what js/src/module.ts declares. Records are converted in marshal.hpp.

#include <emscripten/bind.h>

#include <string>

#include "lookback/engine.hpp"
#include "marshal.hpp"

namespace {

using namespace lookback;
using namespace lookback::bindings;

int code(Status status) { return static_cast<int>(status); }

double attention_bytes(const RawAttentionCall& raw) { return attention_workspace_bytes(to_call(raw)); }

int attention(const RawAttentionCall& raw) {
  return code(attention_forward(to_call(raw), to_pointer<void>(raw.workspace),
                                static_cast<std::size_t>(raw.workspaceBytes)));
}

double layer_bytes(const RawLayerCall& raw) { return multi_head_attention_workspace_bytes(to_layer_call(raw)); }

int layer_forward(const RawLayerCall& raw) {
  return code(multi_head_attention_forward(to_layer_call(raw), to_pointer<void>(raw.attention.workspace),
                                           static_cast<std::size_t>(raw.attention.workspaceBytes)));
}

int linear(const RawLinearCall& raw) {
  return code(linear_forward(to_linear(raw.weight, raw.bias, raw.inputs, raw.outputs), to_pointer<const float>(raw.input),
                             raw.rows, to_pointer<float>(raw.output)));
}

int pack(Pointer weight, int inputs, int outputs, Pointer packed) {
  return code(pack_linear(to_pointer<const float>(weight), inputs, outputs, to_pointer<float>(packed)));
}

int unpack(Pointer packed, int inputs, int outputs, Pointer weight) {
  return code(unpack_linear(to_pointer<const float>(packed), inputs, outputs, to_pointer<float>(weight)));
}

double packed_bytes(int inputs, int outputs) { return packed_linear_bytes(inputs, outputs); }

std::string message(int status) { return status_message(static_cast<Status>(status)); }

}  // namespace

EMSCRIPTEN_BINDINGS(lookback) {
  using emscripten::function;
  using emscripten::value_object;

  value_object<RawView>("RawView")
      .field("data", &RawView::data)
      .field("batchStride", &RawView::batchStride)
      .field("headStride", &RawView::headStride)
      .field("rowStride", &RawView::rowStride);

  value_object<RawBroadcast>("RawBroadcast")
      .field("data", &RawBroadcast::data)
      .field("batchStride", &RawBroadcast::batchStride)
      .field("headStride", &RawBroadcast::headStride)
      .field("queryStride", &RawBroadcast::queryStride)
      .field("keyStride", &RawBroadcast::keyStride);

  value_object<RawAttentionCall>("RawAttentionCall")
      .field("queries", &RawAttentionCall::queries)
      .field("keys", &RawAttentionCall::keys)
      .field("values", &RawAttentionCall::values)
      .field("output", &RawAttentionCall::output)
      .field("batch", &RawAttentionCall::batch)
      .field("heads", &RawAttentionCall::heads)
      .field("kvHeads", &RawAttentionCall::kvHeads)
      .field("queryLength", &RawAttentionCall::queryLength)
      .field("keyLength", &RawAttentionCall::keyLength)
      .field("headDim", &RawAttentionCall::headDim)
      .field("valueDim", &RawAttentionCall::valueDim)
      .field("scale", &RawAttentionCall::scale)
      .field("softcap", &RawAttentionCall::softcap)
      .field("causal", &RawAttentionCall::causal)
      .field("queryOffsets", &RawAttentionCall::queryOffsets)
      .field("mask", &RawAttentionCall::mask)
      .field("bias", &RawAttentionCall::bias)
      .field("weights", &RawAttentionCall::weights)
      .field("weightsKind", &RawAttentionCall::weightsKind)
      .field("weightsHeads", &RawAttentionCall::weightsHeads)
      .field("weightsHeadCount", &RawAttentionCall::weightsHeadCount)
      .field("weightsQueryFrom", &RawAttentionCall::weightsQueryFrom)
      .field("weightsQueryTo", &RawAttentionCall::weightsQueryTo)
      .field("logSumExp", &RawAttentionCall::logSumExp)
      .field("workspace", &RawAttentionCall::workspace)
      .field("workspaceBytes", &RawAttentionCall::workspaceBytes);

  value_object<RawLinearCall>("RawLinearCall")
      .field("input", &RawLinearCall::input)
      .field("weight", &RawLinearCall::weight)
      .field("bias", &RawLinearCall::bias)
      .field("output", &RawLinearCall::output)
      .field("rows", &RawLinearCall::rows)
      .field("inputs", &RawLinearCall::inputs)
      .field("outputs", &RawLinearCall::outputs);

  value_object<RawLayerCall>("RawLayerCall")
      .field("attention", &RawLayerCall::attention)
      .field("input", &RawLayerCall::input)
      .field("memoryKeys", &RawLayerCall::memoryKeys)
      .field("memoryValues", &RawLayerCall::memoryValues)
      .field("projectedKeys", &RawLayerCall::projectedKeys)
      .field("projectedValues", &RawLayerCall::projectedValues)
      .field("output", &RawLayerCall::output)
      .field("embedDim", &RawLayerCall::embedDim)
      .field("keyDim", &RawLayerCall::keyDim)
      .field("valueDim", &RawLayerCall::valueDim)
      .field("queryWeight", &RawLayerCall::queryWeight)
      .field("queryBias", &RawLayerCall::queryBias)
      .field("keyWeight", &RawLayerCall::keyWeight)
      .field("keyBias", &RawLayerCall::keyBias)
      .field("valueWeight", &RawLayerCall::valueWeight)
      .field("valueBias", &RawLayerCall::valueBias)
      .field("outputWeight", &RawLayerCall::outputWeight)
      .field("outputBias", &RawLayerCall::outputBias);

  function("fusedMultiplyAdd", &fused_multiply_add);
  function("statusMessage", &message);
  function("attentionWorkspaceBytes", &attention_bytes);
  function("attention", &attention);
  function("packedLinearBytes", &packed_bytes);
  function("packLinear", &pack);
  function("unpackLinear", &unpack);
  function("linear", &linear);
  function("layerWorkspaceBytes", &layer_bytes);
  function("layerForward", &layer_forward);
}
