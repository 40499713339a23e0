// R20: gradients of the layers, against float64 formulas differentiated by autodiff.hpp, which central differences check here.

#include "autodiff.hpp"
#include "lookback/activation.hpp"
#include "lookback/cross_entropy.hpp"
#include "lookback/embedding.hpp"
#include "lookback/linear.hpp"
#include "lookback/norm.hpp"
#include "lookback/parallel.hpp"
#include "lookback/rotary.hpp"
#include "packed_weight.hpp"
#include "support.hpp"

namespace lookback::test {
namespace {

using reference::Variable;

std::vector<Variable> inputs_of(const std::vector<float>& values) {
  std::vector<Variable> variables;
  for (const float value : values) variables.push_back(Variable::input(value));
  return variables;
}

double largest_of(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

::testing::AssertionResult near_of_largest(const std::vector<float>& actual, const std::vector<double>& expected,
                                           double share) {
  return all_near(actual, expected, share * largest_of(expected));
}

std::vector<float> floats_at(const float* first, Index count) { return {first, first + count}; }

/// A formula of a few numbers that uses every operation.
template <typename Number>
Number formula(const std::vector<Number>& x) {
  using std::erf, std::exp, std::log, std::sqrt, std::tanh;
  Number y = x[0] * x[1] - x[2] / x[3];
  y += exp(x[0] * 0.3) * tanh(x[1]);
  y /= 1.0 + sqrt(x[3]) * erf(x[2]);
  return y + log(x[3] + 2.0) - x[0];
}

TEST(gradients, the_references_derivatives_are_those_of_central_differences) {
  const std::vector<double> at = {0.7, -0.4, 0.3, 1.9};
  std::vector<Variable> variables;
  for (const double value : at) variables.push_back(Variable::input(value));
  const Variable result = formula(variables);
  EXPECT_DOUBLE_EQ(result.value(), formula(at));
  const std::vector<double> slopes = Variable::gradients(result, variables);
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::vector<double> above = at, below = at;
    above[i] += 1e-5;
    below[i] -= 1e-5;
    EXPECT_NEAR(slopes[i], (formula(above) - formula(below)) / 2e-5, 1e-9);
  }
}

struct LinearCase {
  Index inputs, outputs, rows;
};

TEST(gradients, R20_linear_gives_the_gradients_of_input_weight_and_bias_at_every_tail) {
  for (const auto [inputs, outputs, rows] :
       {LinearCase{1, 1, 1}, LinearCase{7, 9, 3}, LinearCase{24, 8, 128}, LinearCase{25, 17, 129},
        LinearCase{48, 30, 300}, LinearCase{70, 5, 6}, LinearCase{31, 64, 20}}) {
    Random random(static_cast<std::uint32_t>(inputs + outputs));
    const std::vector<float> weight = random.vector(inputs * outputs);
    const std::vector<float> input = random.vector(rows * inputs);
    const std::vector<float> grad_output = random.vector(rows * outputs);
    const PackedWeight packed(weight, inputs, outputs, f32);
    std::vector<double> by_input(input.size()), by_weight(weight.size()), by_bias(static_cast<std::size_t>(outputs));
    for (Index r = 0; r < rows; ++r) {
      for (Index o = 0; o < outputs; ++o) {
        const double gradient = grad_output[r * outputs + o];
        by_bias[o] += gradient;
        for (Index i = 0; i < inputs; ++i) {
          by_input[r * inputs + i] += gradient * weight[o * inputs + i];
          by_weight[o * inputs + i] += gradient * input[r * inputs + i];
        }
      }
    }
    for (const bool add : {false, true}) {
      std::vector<float> grad_input(input.size(), add ? 0.5F : untouched);
      std::vector<float> grad_bias(static_cast<std::size_t>(outputs), 0.25F);
      const std::vector<float> begun(weight.size(), 0.125F);
      const PackedWeight grad_weight(begun, inputs, outputs, f32);
      const LinearBackwardCall call{packed.layer(),    input.data(), grad_output.data(),   rows,
                                    grad_input.data(), add,          grad_weight.panels(), grad_bias.data()};
      const Scratch scratch(linear_backward_workspace_bytes(call));
      ASSERT_EQ(linear_backward(call, scratch.data(), scratch.bytes()), Status::ok);
      std::vector<double> expected = by_input;
      for (double& value : expected) value += add ? 0.5 : 0.0;
      EXPECT_TRUE(near_of_largest(grad_input, expected, 1e-6)) << inputs << " " << outputs << " " << rows;
      std::vector<double> expected_weight = by_weight, expected_bias = by_bias;
      for (double& value : expected_weight) value += 0.125;
      for (double& value : expected_bias) value += 0.25;
      EXPECT_TRUE(near_of_largest(grad_weight.stored(), expected_weight, 1e-6))
          << inputs << " " << outputs << " " << rows;
      EXPECT_TRUE(near_of_largest(grad_bias, expected_bias, 1e-6));
    }
  }
}

TEST(gradients, linear_computes_only_what_is_asked_for_and_refuses_other_weights) {
  const PackedWeight packed(std::vector<float>(12, 1.0F), 4, 3, f32);
  const std::vector<float> grad_output(3, 1.0F);
  std::vector<float> grad_bias(3, 0.0F);
  LinearBackwardCall call;
  call.layer = packed.layer();
  call.grad_output = grad_output.data();
  call.rows = 1;
  call.grad_bias = grad_bias.data();
  const Scratch scratch(linear_backward_workspace_bytes(call));
  EXPECT_EQ(linear_backward(call, scratch.data(), scratch.bytes() - 1), Status::workspace_too_small);
  EXPECT_EQ(linear_backward(call, scratch.data(), scratch.bytes()), Status::ok);
  EXPECT_EQ(grad_bias, grad_output);
  call.grad_weight = grad_bias.data();
  EXPECT_EQ(linear_backward(call, scratch.data(), scratch.bytes()), Status::null_pointer);
  call.layer.format.type = WeightType::bf16;
  EXPECT_EQ(linear_backward(call, scratch.data(), scratch.bytes()), Status::invalid_argument);
}

/// Σ grad_output · norm(x) · weight + bias of one row.
Variable norm_sum(NormKind kind, double epsilon, const Variable* x, const std::vector<Variable>& weight,
                  const std::vector<Variable>& bias, const float* grad_output) {
  const auto width = static_cast<double>(weight.size());
  Variable mean = 0.0;
  Variable variance = 0.0;
  for (std::size_t i = 0; i < weight.size() && kind == NormKind::layer_norm; ++i) mean += x[i] / width;
  for (std::size_t i = 0; i < weight.size(); ++i) variance += (x[i] - mean) * (x[i] - mean) / width;
  const Variable root = sqrt(variance + epsilon);
  Variable sum = 0.0;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    sum += static_cast<double>(grad_output[i]) * ((x[i] - mean) / root * weight[i] + bias[i]);
  }
  return sum;
}

TEST(gradients, R20_norms_give_the_gradients_of_rows_of_heads_and_of_their_parameters) {
  for (const NormKind kind : {NormKind::layer_norm, NormKind::rms_norm}) {
    for (const Index width : {1, 3, 4, 7, 16, 29}) {
      for (const bool add : {false, true}) {
        const Index batch = 2, heads = 3, length = 19;
        const Index count = batch * heads * length * width;
        Random random(static_cast<std::uint32_t>(width));
        const std::vector<float> input = random.vector(count);
        const std::vector<float> weight = random.vector(width);
        const std::vector<float> grad_output = random.vector(count);
        std::vector<Variable> variables = inputs_of(input);
        const std::vector<Variable> weights = inputs_of(weight);
        const std::vector<Variable> biases = inputs_of(std::vector<float>(weight.size(), 0.0F));
        const float epsilon = 1e-3F;
        Variable sum = 0.0;
        for (Index row = 0; row < batch * length * heads; ++row) {
          sum += norm_sum(kind, epsilon, variables.data() + row * width, weights, biases,
                          grad_output.data() + row * width);
        }
        variables.insert(variables.end(), weights.begin(), weights.end());
        variables.insert(variables.end(), biases.begin(), biases.end());
        std::vector<double> expected = Variable::gradients(sum, variables);
        for (Index i = 0; i < count && add; ++i) expected[i] += 0.5;
        std::vector<float> grad_weight(weight.size(), 0.0F), grad_bias(weight.size(), 0.0F);
        std::vector<float> grad_input = add ? std::vector<float>(input.size(), 0.5F) : grad_output;
        NormBackwardCall call;
        call.forward = {
            kind, epsilon, width, weight.data(), nullptr, {input.data(), length * heads * width, width, heads * width},
            {},   batch,   heads, length};
        const float* source = add ? grad_output.data() : grad_input.data();
        call.grad_output = {source, length * heads * width, width, heads * width};
        call.grad_input = {grad_input.data(), length * heads * width, width, heads * width};
        call.add_to_grad_input = add;
        call.grad_weight = grad_weight.data();
        call.grad_bias = grad_bias.data();
        const Scratch scratch(norm_backward_workspace_bytes(call));
        ASSERT_EQ(norm_backward(call, scratch.data(), scratch.bytes()), Status::ok);
        const auto weights_at = expected.begin() + count;
        EXPECT_TRUE(near_of_largest(grad_input, {expected.begin(), weights_at}, 3e-6)) << width << " " << add;
        EXPECT_TRUE(all_near(grad_weight, {weights_at, weights_at + width}, 1e-4));
        EXPECT_TRUE(all_near(grad_bias, {weights_at + width, weights_at + 2 * width}, 1e-4));
      }
    }
  }
}

Variable activated(Activation activation, const Variable& x) {
  if (activation == Activation::silu) return x / (1.0 + exp(0.0 - x));
  if (activation == Activation::gelu_erf) return x / 2.0 * (1.0 + erf(x / std::sqrt(2.0)));
  return x / 2.0 * (1.0 + tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(gradients, R20_activations_have_the_slopes_of_their_formulas) {
  for (const Activation activation : {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu}) {
    for (const Index count : {1, 5, 2047, 2051}) {
      Random random(7);
      const std::vector<float> input = random.vector(count, 12.0F);
      const std::vector<float> up = random.vector(count);
      const std::vector<float> grad_output = random.vector(count);
      std::vector<double> slopes, by_gate, by_up;
      for (Index i = 0; i < count; ++i) {
        const std::vector<Variable> x = {Variable::input(input[i])};
        const Variable y = activated(activation, x[0]);
        const double gradient = grad_output[i];
        by_up.push_back(gradient * y.value());
        const double slope = Variable::gradients(y, x)[0];
        slopes.push_back(gradient * slope);
        by_gate.push_back(gradient * slope * up[i]);
      }
      std::vector<float> grad_input = grad_output;
      ASSERT_EQ(activation_backward(activation, input.data(), grad_input.data(), count, grad_input.data()), Status::ok);
      EXPECT_TRUE(all_near(grad_input, slopes, 1.2e-6));
      std::vector<float> grad_gate = grad_output;
      std::vector<float> grad_up(input.size(), untouched);
      ASSERT_EQ(gated_activation_backward(activation, input.data(), up.data(), grad_gate.data(), count,
                                          grad_gate.data(), grad_up.data()),
                Status::ok);
      EXPECT_TRUE(all_near(grad_gate, by_gate, 1.2e-6));
      EXPECT_TRUE(all_near(grad_up, by_up, 4e-6));
    }
  }
}

TEST(gradients, R20_embedding_adds_rows_of_a_token_and_of_a_position) {
  const Index vocabulary = 19, width = 37, rows = 50, positions = 9;
  Random random(3);
  std::vector<std::int32_t> tokens, places;
  for (Index row = 0; row < rows; ++row) {
    tokens.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
    places.push_back(static_cast<std::int32_t>(row % positions));
  }
  const std::vector<float> grad_output = random.vector(rows * width);
  std::vector<double> by_table(static_cast<std::size_t>(vocabulary * width), 0.0);
  std::vector<double> by_position(static_cast<std::size_t>(positions * width), 1.0);
  for (Index row = 0; row < rows; ++row) {
    for (Index i = 0; i < width; ++i) {
      by_table[tokens[row] * width + i] += 3.0 * grad_output[row * width + i];
      by_position[places[row] * width + i] += grad_output[row * width + i];
    }
  }
  const PackedWeight grad_table(std::vector<float>(by_table.size(), 0.0F), width, vocabulary, f32);
  std::vector<float> grad_positions(by_position.size(), 1.0F);
  EmbeddingBackwardCall call;
  call.forward = {
      grad_table.layer(), 3.0F, grad_positions.data(), positions, tokens.data(), places.data(), rows, nullptr};
  call.grad_output = grad_output.data();
  call.grad_table = grad_table.panels();
  call.grad_positions = grad_positions.data();
  ASSERT_EQ(embedding_backward(call), Status::ok);
  EXPECT_TRUE(all_near(grad_table.stored(), by_table, 1e-5));
  EXPECT_TRUE(all_near(grad_positions, by_position, 1e-5));
  tokens[4] = 19;
  EXPECT_EQ(embedding_backward(call), Status::token_out_of_range);
}

TEST(gradients, R20_the_transposed_turn_is_the_transpose_of_the_turn_whatever_the_scaling) {
  for (const bool interleaved : {false, true}) {
    for (const RotaryScaling scaling : {RotaryScaling::none, RotaryScaling::yarn}) {
      RotaryOptions options;
      options.dims = 6;
      options.interleaved = interleaved;
      options.scaling = scaling;
      options.factor = 4.0;
      options.original_length = 8.0;
      const std::vector<std::int32_t> positions = {0, 3, 11, 12};
      const Index length = 4, width = 8;
      std::vector<double> frequencies(3);
      std::vector<float> cosines(12), sines(12);
      rotary_table(options, positions.data(), length, frequencies.data(), cosines.data(), sines.data());
      Random random(5);
      const std::vector<float> rows = random.vector(length * width);
      const std::vector<float> gradients = random.vector(length * width);
      std::vector<float> turned(rows.size()), returned(rows.size());
      RotaryCall call{{rows.data(), 0, 0, width},
                      {turned.data(), 0, 0, width},
                      1,
                      1,
                      length,
                      width,
                      6,
                      interleaved,
                      cosines.data(),
                      sines.data(),
                      0};
      ASSERT_EQ(rotary_apply(call), Status::ok);
      call.input.data = gradients.data();
      call.output.data = returned.data();
      call.transposed = true;
      ASSERT_EQ(rotary_apply(call), Status::ok);
      for (Index row = 0; row < length; ++row) {
        double forwards = 0;
        double backwards = 0;
        for (Index i = row * width; i < (row + 1) * width; ++i) {
          forwards += static_cast<double>(turned[i]) * gradients[i];
          backwards += static_cast<double>(rows[i]) * returned[i];
        }
        EXPECT_NEAR(forwards, backwards, 1e-6) << "<T·x, g> and <x, Tᵀ·g> of row " << row;
      }
    }
  }
}

TEST(gradients, R20_cross_entropy_gives_losses_in_nats_and_their_gradients_through_a_cap) {
  for (const float softcap : {0.0F, 2.5F}) {
    for (const Index vocabulary : {1, 2, 5, 8, 131}) {
      const Index rows = 4;
      Random random(static_cast<std::uint32_t>(vocabulary));
      std::vector<float> logits = random.vector(rows * vocabulary, 6.0F);
      std::vector<std::int32_t> targets;
      for (Index row = 0; row < rows; ++row) targets.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
      targets[2] = -1;
      const std::vector<Variable> variables = inputs_of(logits);
      std::vector<double> losses;
      Variable sum = 0.0;
      for (Index row = 0; row < rows; ++row) {
        Variable total = 0.0;
        std::vector<Variable> capped;
        for (Index v = 0; v < vocabulary; ++v) {
          const Variable& x = variables[row * vocabulary + v];
          capped.push_back(softcap > 0 ? static_cast<double>(softcap) * tanh(x / static_cast<double>(softcap)) : x);
          total += exp(capped.back());
        }
        const Variable loss = targets[row] < 0 ? Variable(0.0) : log(total) - capped[targets[row]];
        losses.push_back(loss.value());
        sum += 0.25 * loss;
      }
      const std::vector<double> expected = Variable::gradients(sum, variables);
      std::vector<double> found(4, -1.0);
      CrossEntropyCall call{logits.data(), targets.data(), rows, vocabulary, softcap, true, 0.25F, found.data()};
      targets[0] = static_cast<std::int32_t>(vocabulary);
      EXPECT_EQ(cross_entropy(call), Status::token_out_of_range);
      EXPECT_EQ(found, std::vector<double>(4, -1.0));
      targets[0] = static_cast<std::int32_t>(random.below(1));
      EXPECT_EQ(cross_entropy(call), Status::ok);
      for (Index row = 1; row < rows; ++row) EXPECT_NEAR(found[row], losses[row], 2e-6);
      EXPECT_TRUE(
          all_near({logits.begin() + vocabulary, logits.end()}, {expected.begin() + vocabulary, expected.end()}, 3e-7));
      EXPECT_TRUE(all_near(floats_at(logits.data() + 2 * vocabulary, vocabulary),
                           std::vector<double>(static_cast<std::size_t>(vocabulary), 0.0), 0.0));
    }
  }
}

}  // namespace
}  // namespace lookback::test
