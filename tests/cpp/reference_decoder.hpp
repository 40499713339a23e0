#pragma once

// A decoder in float64 from the formulas, one sequence at a time and without a cache. It shares the config struct with the library and
// no code.

#include <map>
#include <utility>
#include <vector>

#include "lookback/decoder.hpp"

namespace lookback::reference {

/// Tensors [rows, columns] by (slot, layer).
using DecoderTensors = std::map<std::pair<DecoderSlot, Index>, std::vector<float>>;

struct DecoderResult {
  std::vector<double> logits;                ///< [L, vocab]
  std::vector<std::vector<double>> lens;     ///< [layers][L, vocab]
  std::vector<std::vector<double>> weights;  ///< [layers][heads, L, L]
};

DecoderResult decoder(const DecoderConfig& config, const DecoderTensors& tensors,
                      const std::vector<std::int32_t>& tokens);

using WideTensors = std::map<std::pair<DecoderSlot, Index>, std::vector<double>>;

/// A batch: rows of tokens and what follows each, −1 = not counted. Losses and gradients are those of scale · Σ −ln p(target).
struct TrainingText {
  std::vector<std::vector<std::int32_t>> tokens, targets;
  double scale = 1.0;
  bool causal = true;
};

double decoder_loss(const DecoderConfig& config, const WideTensors& tensors, const TrainingText& text);

struct DecoderGradients {
  double loss;
  WideTensors gradients;
};

/// By differentiating the forward formulas (autodiff.hpp).
DecoderGradients decoder_gradients(const DecoderConfig& config, const DecoderTensors& tensors,
                                   const TrainingText& text);

}  // namespace lookback::reference
