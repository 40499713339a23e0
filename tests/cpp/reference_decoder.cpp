#include "reference_decoder.hpp"

#include <algorithm>
#include <cmath>

#include "autodiff.hpp"

namespace lookback::reference {
namespace {

using std::erf;
using std::exp;
using std::log;
using std::sqrt;
using std::tanh;

double value_of(double number) { return number; }
double value_of(const Variable& number) { return number.value(); }

template <typename Number>
Number capped(Number value, double cap) {
  return cap > 0 ? Number(cap * tanh(value / cap)) : value;
}

template <typename Number>
Number activated(Activation activation, Number x) {
  if (activation == Activation::silu) return x / (1.0 + exp(0.0 - x));
  if (activation == Activation::gelu_erf) return x / 2.0 * (1.0 + erf(x / sqrt(2.0)));
  return x / 2.0 * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// Number: double, or Variable for gradients.
template <typename Number>
class Model {
  using Row = std::vector<Number>;
  using Rows = std::vector<Row>;

public:
  using Tensors = std::map<std::pair<DecoderSlot, Index>, std::vector<Number>>;

  struct Result {
    std::vector<Row> readings;  ///< after each layer: logits [L, vocab]
    std::vector<std::vector<double>> weights;
  };

  Model(const DecoderConfig& config, const Tensors& tensors, bool causal = true)
      : config_(config), tensors_(tensors), causal_(causal) {}

  Result run(const std::vector<std::int32_t>& tokens) {
    Rows x;
    const Row& table = *tensor(DecoderSlot::token_embedding, 0);
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      Row row;
      for (Index i = 0; i < config_.embed_dim; ++i) {
        Number value = static_cast<double>(config_.embed_scale) * table[tokens[at] * config_.embed_dim + i];
        if (config_.learned_positions)
          value += (*tensor(DecoderSlot::position_embedding, 0))[at * config_.embed_dim + i];
        row.push_back(value);
      }
      x.push_back(row);
    }
    Result result;
    for (Index layer = 0; layer < config_.layers; ++layer) {
      add(x, attention(x, layer, result), DecoderSlot::attention_post_norm_weight, layer);
      Rows mlp;
      for (const Row& row : x) mlp.push_back(perceptron(row, layer));
      add(x, mlp, DecoderSlot::mlp_post_norm_weight, layer);
      result.readings.push_back(logits_of(x));
    }
    return result;
  }

private:
  const Row* tensor(DecoderSlot slot, Index layer) const {
    const auto found = tensors_.find({slot, layer});
    return found == tensors_.end() ? nullptr : &found->second;
  }

  Row map(const Row& x, DecoderSlot weight_slot, DecoderSlot bias_slot, Index layer) const {
    const Row& weight = *tensor(weight_slot, layer);
    const Row* bias = tensor(bias_slot, layer);
    Row result;
    for (std::size_t o = 0; o < weight.size() / x.size(); ++o) {
      Number sum = bias != nullptr ? (*bias)[o] : Number(0.0);
      for (std::size_t i = 0; i < x.size(); ++i) sum += weight[o * x.size() + i] * x[i];
      result.push_back(sum);
    }
    return result;
  }

  Row norm(const Row& x, NormKind kind, DecoderSlot weight_slot, const Row* bias, Index layer) const {
    const auto width = static_cast<double>(x.size());
    Number mean = 0.0;
    Number variance = 0.0;
    if (kind == NormKind::layer_norm) {
      for (const Number& v : x) mean += v / width;
    }
    for (const Number& v : x) variance += (v - mean) * (v - mean) / width;
    const Row& weight = *tensor(weight_slot, layer);
    Row result;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Number factor = weight[i] + (config_.norm_weights_from_one ? 1.0 : 0.0);
      result.push_back((x[i] - mean) / sqrt(variance + static_cast<double>(config_.norm_epsilon)) * factor +
                       (bias != nullptr ? (*bias)[i] : Number(0.0)));
    }
    return result;
  }

  void add(Rows& x, const Rows& rows, DecoderSlot post_norm, Index layer) const {
    for (std::size_t at = 0; at < x.size(); ++at) {
      const Row row = config_.post_norms ? norm(rows[at], config_.norm, post_norm, nullptr, layer) : rows[at];
      for (std::size_t i = 0; i < row.size(); ++i) x[at][i] += row[i];
    }
  }

  bool sees_window_only(Index layer) const {
    return config_.window > 0 && layer >= config_.first_windowed_layer &&
           (config_.full_every == 0 || (layer + 1) % config_.full_every != 0);
  }

  /// Norm of each head and turn by the position; plain rotary positions only.
  void prepare(Row& row, DecoderSlot norm_slot, std::size_t position, Index layer) const {
    const auto width = static_cast<std::size_t>(config_.head_dim);
    for (std::size_t from = 0; from < row.size(); from += width) {
      Row head(row.begin() + static_cast<Index>(from), row.begin() + static_cast<Index>(from + width));
      if (config_.query_key_norm) head = norm(head, NormKind::rms_norm, norm_slot, nullptr, layer);
      const Index half = config_.rotary.dims / 2;
      const double base =
          sees_window_only(layer) && config_.window_rotary_base > 0 ? config_.window_rotary_base : config_.rotary.base;
      for (Index pair = 0; pair < half; ++pair) {
        const double angle =
            static_cast<double>(position) *
            std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(config_.rotary.dims));
        Number& a = head[static_cast<std::size_t>(config_.rotary.interleaved ? 2 * pair : pair)];
        Number& b = head[static_cast<std::size_t>(config_.rotary.interleaved ? 2 * pair + 1 : pair + half)];
        const Number turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
      std::copy(head.begin(), head.end(), row.begin() + static_cast<Index>(from));
    }
  }

  Rows attention(const Rows& x, Index layer, Result& result) const {
    Rows queries, keys, values, output;
    for (std::size_t at = 0; at < x.size(); ++at) {
      const Row row = norm(x[at], config_.norm, DecoderSlot::attention_norm_weight,
                           tensor(DecoderSlot::attention_norm_bias, layer), layer);
      queries.push_back(map(row, DecoderSlot::query_weight, DecoderSlot::query_bias, layer));
      keys.push_back(map(row, DecoderSlot::key_weight, DecoderSlot::key_bias, layer));
      values.push_back(map(row, DecoderSlot::value_weight, DecoderSlot::value_bias, layer));
      prepare(queries[at], DecoderSlot::query_norm_weight, at, layer);
      prepare(keys[at], DecoderSlot::key_norm_weight, at, layer);
    }
    const std::size_t length = x.size();
    const double scale =
        config_.attention_scale != 0 ? static_cast<double>(config_.attention_scale) : 1 / std::sqrt(config_.head_dim);
    std::vector<double> shown;
    Rows mixed(length, Row(static_cast<std::size_t>(config_.heads * config_.head_dim)));
    for (Index h = 0; h < config_.heads; ++h) {
      const Index kv = h * config_.kv_heads / config_.heads;
      for (std::size_t i = 0; i < length; ++i) {
        Row weights(length, Number(0.0));
        const std::size_t window = static_cast<std::size_t>(config_.window);
        const std::size_t first = sees_window_only(layer) && i + 1 > window ? i + 1 - window : 0;
        const std::size_t last = causal_ ? i : length - 1;
        Number sum = 0.0;
        for (std::size_t j = first; j <= last; ++j) {
          Number score = 0.0;
          for (Index d = 0; d < config_.head_dim; ++d) {
            score += queries[i][static_cast<std::size_t>(h * config_.head_dim + d)] *
                     keys[j][static_cast<std::size_t>(kv * config_.head_dim + d)];
          }
          weights[j] = exp(capped<Number>(scale * score, config_.attention_softcap));
          sum += weights[j];
        }
        for (std::size_t j = 0; j < length; ++j) {
          weights[j] /= sum;
          for (Index d = 0; d < config_.head_dim; ++d) {
            mixed[i][static_cast<std::size_t>(h * config_.head_dim + d)] +=
                weights[j] * values[j][static_cast<std::size_t>(kv * config_.head_dim + d)];
          }
        }
        for (const Number& weight : weights) shown.push_back(value_of(weight));
      }
    }
    result.weights.push_back(shown);
    for (const Row& row : mixed)
      output.push_back(map(row, DecoderSlot::output_weight, DecoderSlot::output_bias, layer));
    return output;
  }

  Row perceptron(const Row& x, Index layer) const {
    const Row row =
        norm(x, config_.norm, DecoderSlot::mlp_norm_weight, tensor(DecoderSlot::mlp_norm_bias, layer), layer);
    Row up = map(row, DecoderSlot::up_weight, DecoderSlot::up_bias, layer);
    const Row gate = config_.gated ? map(row, DecoderSlot::gate_weight, DecoderSlot::gate_bias, layer) : Row();
    for (std::size_t i = 0; i < up.size(); ++i) {
      up[i] = config_.gated ? activated(config_.activation, gate[i]) * up[i] : activated(config_.activation, up[i]);
    }
    return map(up, DecoderSlot::down_weight, DecoderSlot::down_bias, layer);
  }

  Row logits_of(const Rows& x) const {
    Row result;
    const DecoderSlot head = config_.tied_head ? DecoderSlot::token_embedding : DecoderSlot::head;
    for (const Row& own : x) {
      const Row row =
          norm(own, config_.norm, DecoderSlot::final_norm_weight, tensor(DecoderSlot::final_norm_bias, 0), 0);
      // The head has no bias: a slot of another kind, which no tensor of this key has.
      for (const Number& logit : map(row, head, static_cast<DecoderSlot>(-1), 0)) {
        result.push_back(capped<Number>(logit, config_.logit_softcap));
      }
    }
    return result;
  }

  const DecoderConfig& config_;
  const Tensors& tensors_;
  bool causal_;
};

/// scale · Σ −ln p(target) over the targets that count.
template <typename Number>
Number loss_of(const DecoderConfig& config, const typename Model<Number>::Tensors& tensors, const TrainingText& text) {
  Number loss = 0.0;
  const auto vocabulary = static_cast<std::size_t>(config.vocab_size);
  for (std::size_t row = 0; row < text.tokens.size(); ++row) {
    const std::vector<Number> logits =
        Model<Number>(config, tensors, text.causal).run(text.tokens[row]).readings.back();
    for (std::size_t at = 0; at < text.tokens[row].size(); ++at) {
      const std::int32_t target = text.targets[row][at];
      if (target < 0) continue;
      Number sum = 0.0;
      for (std::size_t v = 0; v < vocabulary; ++v) sum += exp(logits[at * vocabulary + v]);
      loss += text.scale * (log(sum) - logits[at * vocabulary + static_cast<std::size_t>(target)]);
    }
  }
  return loss;
}

Model<double>::Tensors widened(const DecoderTensors& tensors) {
  Model<double>::Tensors wide;
  for (const auto& [key, values] : tensors) wide[key] = {values.begin(), values.end()};
  return wide;
}

}  // namespace

DecoderResult decoder(const DecoderConfig& config, const DecoderTensors& tensors,
                      const std::vector<std::int32_t>& tokens) {
  const Model<double>::Tensors wide = widened(tensors);
  const Model<double>::Result result = Model<double>(config, wide).run(tokens);
  return {result.readings.back(), result.readings, result.weights};
}

double decoder_loss(const DecoderConfig& config, const WideTensors& tensors, const TrainingText& text) {
  return loss_of<double>(config, tensors, text);
}

DecoderGradients decoder_gradients(const DecoderConfig& config, const DecoderTensors& tensors,
                                   const TrainingText& text) {
  Model<Variable>::Tensors variables;
  std::vector<Variable> inputs;
  for (const auto& [key, values] : tensors) {
    for (const float value : values) inputs.push_back(Variable::input(value));
    variables[key] = {inputs.end() - static_cast<Index>(values.size()), inputs.end()};
  }
  const Variable loss = loss_of<Variable>(config, variables, text);
  const std::vector<double> slopes = Variable::gradients(loss, inputs);
  DecoderGradients result{loss.value(), {}};
  auto next = slopes.begin();
  for (const auto& [key, values] : tensors) {
    const auto end = next + static_cast<Index>(values.size());
    result.gradients[key] = {next, end};
    next = end;
  }
  return result;
}

}  // namespace lookback::reference
