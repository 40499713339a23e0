// Registers what js/src/module-decoder.ts declares of decoders and their layers. Records are converted in marshal_decoder.hpp.

#include <emscripten/bind.h>

#include "marshal_decoder.hpp"

namespace {

using namespace lookback;
using namespace lookback::bindings;

int code(Status status) { return static_cast<int>(status); }

template <typename T>
Pointer address(const T* pointer) {
  return static_cast<Pointer>(reinterpret_cast<std::uintptr_t>(pointer));
}

Decoder decoder_at(Pointer memory) { return Decoder(to_pointer<void>(memory)); }
DecoderSession session_at(Pointer memory) { return DecoderSession(to_pointer<void>(memory)); }
Sampler sampler_at(Pointer memory) { return Sampler(to_pointer<void>(memory)); }

int norm(const RawNormCall& raw) { return code(norm_forward(to_norm_call(raw))); }

int activation(int kind, Pointer input, int count, Pointer output) {
  return code(activation_forward(static_cast<Activation>(kind), to_pointer<const float>(input), count,
                                 to_pointer<float>(output)));
}

double decoder_bytes(const RawDecoderConfig& raw) { return Decoder::bytes(to_decoder_config(raw)); }

int decoder_create(const RawDecoderConfig& raw, Pointer memory) {
  return code(Decoder::create(to_decoder_config(raw), to_pointer<void>(memory)));
}

int decoder_slot_rows(Pointer decoder, int slot) {
  return static_cast<int>(decoder_slot(decoder_at(decoder).config(), static_cast<DecoderSlot>(slot)).rows);
}

int decoder_slot_columns(Pointer decoder, int slot) {
  return static_cast<int>(decoder_slot(decoder_at(decoder).config(), static_cast<DecoderSlot>(slot)).columns);
}

int decoder_write(Pointer decoder, const RawDecoderRows& raw) {
  return code(decoder_at(decoder).write(to_decoder_rows(raw)));
}

double session_bytes(Pointer decoder, const RawDecoderSession& raw) {
  return DecoderSession::bytes(decoder_at(decoder).config(), to_session_shape(raw));
}

int session_create(Pointer decoder, const RawDecoderSession& raw, Pointer memory) {
  return code(DecoderSession::create(decoder_at(decoder).config(), to_session_shape(raw), to_pointer<void>(memory)));
}

int forward(Pointer decoder, Pointer session, const RawDecoderCall& raw) {
  DecoderSession used = session_at(session);
  return code(decoder_forward(decoder_at(decoder), used, to_decoder_call(raw)));
}

Pointer session_cache(Pointer session, int layer) { return address(session_at(session).cache(layer).memory()); }
int session_columns(Pointer session, int layer) { return static_cast<int>(session_at(session).cache(layer).columns()); }
int session_truncate(Pointer session, int length) { return code(session_at(session).truncate(length)); }
void session_reset(Pointer session) { session_at(session).reset(); }
Pointer session_padding(Pointer session) { return address(session_at(session).padding()); }
Pointer step_tokens(Pointer session) { return address(session_at(session).step_tokens()); }
Pointer step_logits(Pointer session) { return address(session_at(session).step_logits()); }

double sampler_bytes(const RawSampler& raw) { return Sampler::bytes(to_sampler_options(raw)); }

int sampler_create(const RawSampler& raw, Pointer memory) {
  return code(Sampler::create(to_sampler_options(raw), to_pointer<void>(memory)));
}

/// A seed of 64 bits in two halves.
void sampler_begin(Pointer sampler, int row, std::uint32_t low, std::uint32_t high) {
  sampler_at(sampler).restart(row, static_cast<std::uint64_t>(high) << 32U | low);
}

int sampler_observe(Pointer sampler, int row, Pointer tokens, int count) {
  return code(sampler_at(sampler).observe(row, to_pointer<const std::int32_t>(tokens), count));
}

Pointer candidate_ids(Pointer sampler, int row) { return address(sampler_at(sampler).candidate_ids(row)); }
Pointer candidate_probabilities(Pointer sampler, int row) {
  return address(sampler_at(sampler).candidate_probabilities(row));
}
float entropy(Pointer sampler, int row) { return sampler_at(sampler).entropy(row); }

int sample(Pointer session, Pointer sampler) {
  DecoderSession drawn = session_at(session);
  Sampler used = sampler_at(sampler);
  return code(decoder_sample(drawn, used));
}

int step(Pointer decoder, Pointer session, Pointer sampler) {
  DecoderSession stepped = session_at(session);
  Sampler used = sampler_at(sampler);
  return code(decoder_step(decoder_at(decoder), stepped, used));
}

}  // namespace

EMSCRIPTEN_BINDINGS(lookback_decoder) {
  using emscripten::function;
  using emscripten::value_object;

  value_object<RawNormCall>("RawNormCall")
      .field("kind", &RawNormCall::kind)
      .field("epsilon", &RawNormCall::epsilon)
      .field("rows", &RawNormCall::rows)
      .field("width", &RawNormCall::width)
      .field("input", &RawNormCall::input)
      .field("weight", &RawNormCall::weight)
      .field("bias", &RawNormCall::bias)
      .field("output", &RawNormCall::output);

  value_object<RawDecoderConfig>("RawDecoderConfig")
      .field("vocabSize", &RawDecoderConfig::vocabSize)
      .field("layers", &RawDecoderConfig::layers)
      .field("embedDim", &RawDecoderConfig::embedDim)
      .field("heads", &RawDecoderConfig::heads)
      .field("kvHeads", &RawDecoderConfig::kvHeads)
      .field("headDim", &RawDecoderConfig::headDim)
      .field("hiddenDim", &RawDecoderConfig::hiddenDim)
      .field("contextLength", &RawDecoderConfig::contextLength)
      .field("norm", &RawDecoderConfig::norm)
      .field("activation", &RawDecoderConfig::activation)
      .field("gated", &RawDecoderConfig::gated)
      .field("learnedPositions", &RawDecoderConfig::learnedPositions)
      .field("tiedHead", &RawDecoderConfig::tiedHead)
      .field("queryKeyValueBias", &RawDecoderConfig::queryKeyValueBias)
      .field("outputBias", &RawDecoderConfig::outputBias)
      .field("mlpBias", &RawDecoderConfig::mlpBias)
      .field("queryKeyNorm", &RawDecoderConfig::queryKeyNorm)
      .field("postNorms", &RawDecoderConfig::postNorms)
      .field("normWeightsFromOne", &RawDecoderConfig::normWeightsFromOne)
      .field("normEpsilon", &RawDecoderConfig::normEpsilon)
      .field("embedScale", &RawDecoderConfig::embedScale)
      .field("attentionScale", &RawDecoderConfig::attentionScale)
      .field("attentionSoftcap", &RawDecoderConfig::attentionSoftcap)
      .field("logitSoftcap", &RawDecoderConfig::logitSoftcap)
      .field("window", &RawDecoderConfig::window)
      .field("firstWindowedLayer", &RawDecoderConfig::firstWindowedLayer)
      .field("fullEvery", &RawDecoderConfig::fullEvery)
      .field("rotary", &RawDecoderConfig::rotary)
      .field("weightType", &RawDecoderConfig::weightType)
      .field("weightGroup", &RawDecoderConfig::weightGroup)
      .field("windowRotaryBase", &RawDecoderConfig::windowRotaryBase);

  value_object<RawDecoderRows>("RawDecoderRows")
      .field("slot", &RawDecoderRows::slot)
      .field("layer", &RawDecoderRows::layer)
      .field("firstRow", &RawDecoderRows::firstRow)
      .field("rowCount", &RawDecoderRows::rowCount)
      .field("source", &RawDecoderRows::source)
      .field("type", &RawDecoderRows::type)
      .field("sourceStride", &RawDecoderRows::sourceStride)
      .field("transposed", &RawDecoderRows::transposed);

  value_object<RawDecoderSession>("RawDecoderSession")
      .field("batch", &RawDecoderSession::batch)
      .field("capacity", &RawDecoderSession::capacity)
      .field("chunk", &RawDecoderSession::chunk)
      .field("cacheType", &RawDecoderSession::cacheType)
      .field("rolling", &RawDecoderSession::rolling);

  value_object<RawDecoderCall>("RawDecoderCall")
      .field("tokens", &RawDecoderCall::tokens)
      .field("length", &RawDecoderCall::length)
      .field("tokenLengths", &RawDecoderCall::tokenLengths)
      .field("tokenMask", &RawDecoderCall::tokenMask)
      .field("logitsOf", &RawDecoderCall::logitsOf)
      .field("logits", &RawDecoderCall::logits)
      .field("weights", &RawDecoderCall::weights)
      .field("weightLayers", &RawDecoderCall::weightLayers)
      .field("weightLayerCount", &RawDecoderCall::weightLayerCount)
      .field("weightHeads", &RawDecoderCall::weightHeads)
      .field("weightHeadCount", &RawDecoderCall::weightHeadCount)
      .field("lens", &RawDecoderCall::lens)
      .field("lensLayers", &RawDecoderCall::lensLayers)
      .field("lensLayerCount", &RawDecoderCall::lensLayerCount);

  value_object<RawSampler>("RawSampler")
      .field("batch", &RawSampler::batch)
      .field("vocabSize", &RawSampler::vocabSize)
      .field("temperature", &RawSampler::temperature)
      .field("repetitionPenalty", &RawSampler::repetitionPenalty)
      .field("topK", &RawSampler::topK)
      .field("topP", &RawSampler::topP)
      .field("minP", &RawSampler::minP)
      .field("candidates", &RawSampler::candidates);

  function("norm", &norm);
  function("activation", &activation);
  function("decoderBytes", &decoder_bytes);
  function("decoderCreate", &decoder_create);
  function("decoderSlotRows", &decoder_slot_rows);
  function("decoderSlotColumns", &decoder_slot_columns);
  function("decoderWrite", &decoder_write);
  function("sessionBytes", &session_bytes);
  function("sessionCreate", &session_create);
  function("decoderForward", &forward);
  function("decoderStep", &step);
  function("decoderSample", &sample);
  function("sessionCache", &session_cache);
  function("sessionColumns", &session_columns);
  function("sessionTruncate", &session_truncate);
  function("sessionReset", &session_reset);
  function("sessionPadding", &session_padding);
  function("sessionStepTokens", &step_tokens);
  function("sessionStepLogits", &step_logits);
  function("samplerBytes", &sampler_bytes);
  function("samplerCreate", &sampler_create);
  function("samplerBegin", &sampler_begin);
  function("samplerObserve", &sampler_observe);
  function("samplerCandidateIds", &candidate_ids);
  function("samplerCandidateProbabilities", &candidate_probabilities);
  function("samplerEntropy", &entropy);
}
