// Registers what js/src/module.ts declares. Records are converted in marshal.hpp.

#include <emscripten/bind.h>

#include <string>

#include "lookback/engine.hpp"
#include "lookback/parallel.hpp"
#include "marshal.hpp"

namespace {

using namespace lookback;
using namespace lookback::bindings;

int code(Status status) { return static_cast<int>(status); }

int threads(int wanted) { return static_cast<int>(set_threads(wanted)); }

int running() { return static_cast<int>(running_threads()); }

double attention_bytes(const RawAttentionCall& raw) { return attention_workspace_bytes(to_call(raw)); }

int attention(const RawAttentionCall& raw) {
  return code(
      attention_forward(to_call(raw), to_pointer<void>(raw.workspace), static_cast<std::size_t>(raw.workspaceBytes)));
}

int attention_items(const RawAttentionCall& raw) {
  Index items = 0;
  const Status status = attention_begin(to_call(raw), to_pointer<void>(raw.workspace),
                                        static_cast<std::size_t>(raw.workspaceBytes), items);
  return status == Status::ok ? static_cast<int>(items) : -code(status);
}

void attention_slice(Pointer workspace, int from, int to) { attention_run(to_pointer<void>(workspace), from, to); }

void attention_finish(Pointer workspace, bool finished) { attention_end(to_pointer<void>(workspace), finished); }

double backward_bytes(const RawAttentionBackwardCall& raw) {
  return attention_backward_workspace_bytes(to_backward_call(raw));
}

int backward(const RawAttentionBackwardCall& raw) {
  return code(attention_backward(to_backward_call(raw), to_pointer<void>(raw.forward.workspace),
                                 static_cast<std::size_t>(raw.forward.workspaceBytes)));
}

int backward_items(const RawAttentionBackwardCall& raw) {
  Index items = 0;
  const Status status = attention_backward_begin(to_backward_call(raw), to_pointer<void>(raw.forward.workspace),
                                                 static_cast<std::size_t>(raw.forward.workspaceBytes), items);
  return status == Status::ok ? static_cast<int>(items) : -code(status);
}

void backward_slice(Pointer workspace, int from, int to) {
  attention_backward_run(to_pointer<void>(workspace), from, to);
}

void backward_finish(Pointer workspace, bool finished) {
  if (finished) attention_backward_end(to_pointer<void>(workspace));
}

double layer_bytes(const RawLayerCall& raw) { return multi_head_attention_workspace_bytes(to_layer_call(raw)); }

int layer_forward(const RawLayerCall& raw) {
  return code(multi_head_attention_forward(to_layer_call(raw), to_pointer<void>(raw.attention.workspace),
                                           static_cast<std::size_t>(raw.attention.workspaceBytes)));
}

int layer_items(const RawLayerCall& raw) {
  Index items = 0;
  const Status status = multi_head_attention_begin(to_layer_call(raw), to_pointer<void>(raw.attention.workspace),
                                                   static_cast<std::size_t>(raw.attention.workspaceBytes), items);
  return status == Status::ok ? static_cast<int>(items) : -code(status);
}

void layer_slice(Pointer workspace, int from, int to) {
  multi_head_attention_run(to_pointer<void>(workspace), from, to);
}

int layer_finish(Pointer workspace, bool finished) {
  return code(multi_head_attention_end(to_pointer<void>(workspace), finished));
}

double layer_backward_bytes(const RawLayerBackwardCall& raw) {
  return multi_head_attention_backward_workspace_bytes(to_layer_backward_call(raw));
}

int layer_backward(const RawLayerBackwardCall& raw) {
  const RawAttentionCall& own = raw.forward.attention;
  return code(multi_head_attention_backward(to_layer_backward_call(raw), to_pointer<void>(own.workspace),
                                            static_cast<std::size_t>(own.workspaceBytes)));
}

double linear_bytes(const RawLinearCall& raw) { return linear_workspace_bytes(to_linear(raw.layer), raw.rows); }

int linear(const RawLinearCall& raw) {
  return code(linear_forward(to_linear(raw.layer), to_pointer<const float>(raw.input), raw.rows,
                             to_pointer<float>(raw.output), to_pointer<void>(raw.workspace),
                             static_cast<std::size_t>(raw.workspaceBytes)));
}

int pack(const RawWeightRows& raw, const RawLinear& layer) {
  return code(pack_linear(to_rows(raw), layer.inputs, layer.outputs, to_format(layer.type, layer.group),
                          to_pointer<void>(layer.weight)));
}

int unpack(const RawLinear& layer, int first, int count, Pointer rows) {
  return code(unpack_linear(to_linear(layer), first, count, to_pointer<float>(rows)));
}

double packed_bytes(int inputs, int outputs, int type, int group) {
  return packed_linear_bytes(inputs, outputs, to_format(type, group));
}

int rotary(const RawRotaryCall& raw) {
  const RotaryOptions options = to_rotary(raw.options);
  const RotaryCall call{to_view<const float>(raw.input),
                        to_view<float>(raw.output),
                        raw.batch,
                        raw.heads,
                        raw.length,
                        raw.width,
                        options.dims,
                        options.interleaved,
                        to_pointer<const float>(raw.cosines),
                        to_pointer<const float>(raw.sines),
                        raw.tableBatchRows};
  if (raw.positions != 0) {
    if (const Status status = validate_rotary(options, raw.width); status != Status::ok) return code(status);
    rotary_table(options, to_pointer<const std::int32_t>(raw.positions), raw.tableRows,
                 to_pointer<double>(raw.frequencies), to_pointer<float>(raw.cosines), to_pointer<float>(raw.sines));
  }
  return code(rotary_apply(call));
}

KvCache cache_at(Pointer address) { return KvCache(to_pointer<void>(address)); }

double cache_bytes(const RawCacheShape& raw) { return KvCache::bytes(to_cache_shape(raw)); }

int cache_create(const RawCacheShape& raw, Pointer address) {
  return code(KvCache::create(to_cache_shape(raw), to_pointer<void>(address)));
}

int cache_append(Pointer cache, const RawCacheTokens& raw) { return code(cache_at(cache).append(to_tokens(raw))); }

void cache_read(Pointer cache, Pointer keys, Pointer values) {
  cache_at(cache).read(to_pointer<float>(keys), to_pointer<float>(values));
}

int cache_truncate(Pointer cache, int length) { return code(cache_at(cache).truncate(length)); }

void cache_reset(Pointer cache) { cache_at(cache).reset(); }

Pointer cache_lengths(Pointer cache) {
  return static_cast<Pointer>(reinterpret_cast<std::uintptr_t>(cache_at(cache).lengths()));
}

Pointer cache_first_positions(Pointer cache) {
  return static_cast<Pointer>(reinterpret_cast<std::uintptr_t>(cache_at(cache).first_positions()));
}

double cache_saved_bytes(Pointer cache) { return cache_at(cache).saved_bytes(); }

void cache_save(Pointer cache, Pointer target) { cache_at(cache).save(to_pointer<std::uint8_t>(target)); }

int cache_load(Pointer cache, Pointer source, double bytes) {
  return code(cache_at(cache).load(to_pointer<const std::uint8_t>(source), bytes));
}

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
      .field("windowLeft", &RawAttentionCall::windowLeft)
      .field("windowRight", &RawAttentionCall::windowRight)
      .field("keyLengths", &RawAttentionCall::keyLengths)
      .field("keyMask", &RawAttentionCall::keyMask)
      .field("alibiSlopes", &RawAttentionCall::alibiSlopes)
      .field("sinks", &RawAttentionCall::sinks)
      .field("dropoutP", &RawAttentionCall::dropoutP)
      .field("dropoutSeed", &RawAttentionCall::dropoutSeed)
      .field("cache", &RawAttentionCall::cache)
      .field("newLength", &RawAttentionCall::newLength)
      .field("topK", &RawAttentionCall::topK)
      .field("topIndices", &RawAttentionCall::topIndices)
      .field("topWeights", &RawAttentionCall::topWeights)
      .field("entropy", &RawAttentionCall::entropy)
      .field("distance", &RawAttentionCall::distance)
      .field("map", &RawAttentionCall::map)
      .field("mapRows", &RawAttentionCall::mapRows)
      .field("mapColumns", &RawAttentionCall::mapColumns)
      .field("workspace", &RawAttentionCall::workspace)
      .field("workspaceBytes", &RawAttentionCall::workspaceBytes);

  value_object<RawAttentionBackwardCall>("RawAttentionBackwardCall")
      .field("forward", &RawAttentionBackwardCall::forward)
      .field("logSumExp", &RawAttentionBackwardCall::logSumExp)
      .field("gradOutput", &RawAttentionBackwardCall::gradOutput)
      .field("gradQueries", &RawAttentionBackwardCall::gradQueries)
      .field("gradKeys", &RawAttentionBackwardCall::gradKeys)
      .field("gradValues", &RawAttentionBackwardCall::gradValues)
      .field("gradBias", &RawAttentionBackwardCall::gradBias)
      .field("gradSinks", &RawAttentionBackwardCall::gradSinks);

  value_object<RawLinear>("RawLinear")
      .field("weight", &RawLinear::weight)
      .field("bias", &RawLinear::bias)
      .field("inputs", &RawLinear::inputs)
      .field("outputs", &RawLinear::outputs)
      .field("type", &RawLinear::type)
      .field("group", &RawLinear::group);

  value_object<RawLinearCall>("RawLinearCall")
      .field("layer", &RawLinearCall::layer)
      .field("input", &RawLinearCall::input)
      .field("output", &RawLinearCall::output)
      .field("rows", &RawLinearCall::rows)
      .field("workspace", &RawLinearCall::workspace)
      .field("workspaceBytes", &RawLinearCall::workspaceBytes);

  value_object<RawWeightRows>("RawWeightRows")
      .field("values", &RawWeightRows::values)
      .field("type", &RawWeightRows::type)
      .field("transposed", &RawWeightRows::transposed)
      .field("first", &RawWeightRows::first)
      .field("count", &RawWeightRows::count)
      .field("stride", &RawWeightRows::stride);

  value_object<RawRotary>("RawRotary")
      .field("dims", &RawRotary::dims)
      .field("interleaved", &RawRotary::interleaved)
      .field("base", &RawRotary::base)
      .field("scaling", &RawRotary::scaling)
      .field("factor", &RawRotary::factor)
      .field("originalLength", &RawRotary::originalLength)
      .field("lowFrequencyFactor", &RawRotary::lowFrequencyFactor)
      .field("highFrequencyFactor", &RawRotary::highFrequencyFactor)
      .field("betaFast", &RawRotary::betaFast)
      .field("betaSlow", &RawRotary::betaSlow)
      .field("attentionFactor", &RawRotary::attentionFactor);

  value_object<RawRotaryCall>("RawRotaryCall")
      .field("options", &RawRotaryCall::options)
      .field("input", &RawRotaryCall::input)
      .field("output", &RawRotaryCall::output)
      .field("batch", &RawRotaryCall::batch)
      .field("heads", &RawRotaryCall::heads)
      .field("length", &RawRotaryCall::length)
      .field("width", &RawRotaryCall::width)
      .field("positions", &RawRotaryCall::positions)
      .field("tableRows", &RawRotaryCall::tableRows)
      .field("tableBatchRows", &RawRotaryCall::tableBatchRows)
      .field("cosines", &RawRotaryCall::cosines)
      .field("sines", &RawRotaryCall::sines)
      .field("frequencies", &RawRotaryCall::frequencies);

  value_object<RawCacheShape>("RawCacheShape")
      .field("batch", &RawCacheShape::batch)
      .field("kvHeads", &RawCacheShape::kvHeads)
      .field("headDim", &RawCacheShape::headDim)
      .field("valueDim", &RawCacheShape::valueDim)
      .field("capacity", &RawCacheShape::capacity)
      .field("type", &RawCacheShape::type)
      .field("rolling", &RawCacheShape::rolling);

  value_object<RawCacheTokens>("RawCacheTokens")
      .field("keys", &RawCacheTokens::keys)
      .field("values", &RawCacheTokens::values)
      .field("count", &RawCacheTokens::count)
      .field("keyLengths", &RawCacheTokens::keyLengths)
      .field("keyMask", &RawCacheTokens::keyMask);

  value_object<RawLayerCall>("RawLayerCall")
      .field("attention", &RawLayerCall::attention)
      .field("rotary", &RawLayerCall::rotary)
      .field("positions", &RawLayerCall::positions)
      .field("input", &RawLayerCall::input)
      .field("memoryKeys", &RawLayerCall::memoryKeys)
      .field("memoryValues", &RawLayerCall::memoryValues)
      .field("projectedKeys", &RawLayerCall::projectedKeys)
      .field("projectedValues", &RawLayerCall::projectedValues)
      .field("output", &RawLayerCall::output)
      .field("query", &RawLayerCall::query)
      .field("key", &RawLayerCall::key)
      .field("value", &RawLayerCall::value)
      .field("outputProjection", &RawLayerCall::outputProjection);

  value_object<RawProjectionGradients>("RawProjectionGradients")
      .field("weight", &RawProjectionGradients::weight)
      .field("bias", &RawProjectionGradients::bias);

  value_object<RawLayerBackwardCall>("RawLayerBackwardCall")
      .field("forward", &RawLayerBackwardCall::forward)
      .field("gradOutput", &RawLayerBackwardCall::gradOutput)
      .field("gradInput", &RawLayerBackwardCall::gradInput)
      .field("gradMemoryKeys", &RawLayerBackwardCall::gradMemoryKeys)
      .field("gradMemoryValues", &RawLayerBackwardCall::gradMemoryValues)
      .field("query", &RawLayerBackwardCall::query)
      .field("key", &RawLayerBackwardCall::key)
      .field("value", &RawLayerBackwardCall::value)
      .field("outputProjection", &RawLayerBackwardCall::outputProjection);

  function("fusedMultiplyAdd", &fused_multiply_add);
  function("useWideTiles", &use_wide_tiles);
  function("statusMessage", &message);
  function("attentionWorkspaceBytes", &attention_bytes);
  function("attention", &attention);
  function("attentionBegin", &attention_items);
  function("attentionRun", &attention_slice);
  function("attentionEnd", &attention_finish);
  function("attentionBackwardWorkspaceBytes", &backward_bytes);
  function("attentionBackward", &backward);
  function("attentionBackwardBegin", &backward_items);
  function("attentionBackwardRun", &backward_slice);
  function("attentionBackwardEnd", &backward_finish);
  function("setThreads", &threads);
  function("runningThreads", &running);
  function("packedLinearBytes", &packed_bytes);
  function("packLinear", &pack);
  function("unpackLinear", &unpack);
  function("linearWorkspaceBytes", &linear_bytes);
  function("linear", &linear);
  function("layerWorkspaceBytes", &layer_bytes);
  function("layerForward", &layer_forward);
  function("layerBegin", &layer_items);
  function("layerRun", &layer_slice);
  function("layerEnd", &layer_finish);
  function("layerBackwardWorkspaceBytes", &layer_backward_bytes);
  function("layerBackward", &layer_backward);
  function("rotary", &rotary);
  function("kvCacheBytes", &cache_bytes);
  function("kvCacheCreate", &cache_create);
  function("kvCacheAppend", &cache_append);
  function("kvCacheRead", &cache_read);
  function("kvCacheTruncate", &cache_truncate);
  function("kvCacheReset", &cache_reset);
  function("kvCacheLengths", &cache_lengths);
  function("kvCacheFirstPositions", &cache_first_positions);
  function("kvCacheSavedBytes", &cache_saved_bytes);
  function("kvCacheSave", &cache_save);
  function("kvCacheLoad", &cache_load);
}
