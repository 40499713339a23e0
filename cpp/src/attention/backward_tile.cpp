#include "attention/backward_tile.hpp"

#include <algorithm>
#include <limits>

#include "attention/score_block.hpp"
#include "attention/tile_dropout.hpp"
#include "kernels/pack.hpp"
#include "kernels/row_tile.hpp"
#include "kernels/softmax.hpp"
#include "kernels/softmax_gradient.hpp"
#include "kernels/value_tile.hpp"

namespace lookback {
namespace {

using namespace kernels;

/// Keys that take part with the same queries of a tile: queries outside of [first_row, end_row) see none of them.
struct Segment {
  KeyRange keys;
  Index first_row = 0;
  Index end_row = 0;
};

/// Whole groups of rows_at_once(), so that only the last of a block has a smaller one.
constexpr Index segment_keys = 12;
constexpr Index most_segments = block_keys / segment_keys + 2;

class TileBackward {
public:
  TileBackward(const BackwardRun& run, const KeySource& source, const TileRows& rows, KeyRange part,
               BackwardWorkspace& work) noexcept
      : run_(run),
        call_(run.call.forward),
        source_(source),
        rows_(rows),
        part_(part),
        work_(work),
        dropout_(call_, rows) {}

  void compute() noexcept {
    std::fill_n(work_.grad_queries, rows_.count * run_.key_width, 0.0F);
    clear_bias_gradients();
    const KeyRange keys = intersect(part_, rows_.hull(0, rows_.count));
    if (keys.empty()) return;
    pack();
    for (Index first = keys.from / block_keys * block_keys; first < keys.to; first += block_keys) {
      const KeyRange block{static_cast<std::int32_t>(first), static_cast<std::int32_t>(first + block_keys)};
      take_block(intersect(block, keys));
    }
  }

private:
  /// Row statistics and the four packed forms of queries and output gradients.
  void pack() noexcept {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const AttentionBackwardCall& call = run_.call;
    std::fill_n(log_sum_exp_, tile_queries, infinity);
    std::fill_n(delta_, tile_queries, 0.0F);
    for (Index row = 0; row < rows_.count; ++row) {
      const Index query = rows_.first_query + row;
      const float value =
          call.log_sum_exp[(rows_.batch * call_.shape.heads + rows_.head) * call_.shape.query_length + query];
      log_sum_exp_[row] = value == -infinity ? infinity : value;
      delta_[row] = static_cast<float>(grad_output_times_output(call, rows_.batch, rows_.head, query));
    }
    pack_queries(call_, rows_, work_.scores);
    const ConstView& grad_output = call.grad_output;
    for (Index first = 0; first < rows_.count; first += panel_width) {
      pack_rows_as_lanes(grad_output.row(rows_.batch, rows_.head, rows_.first_query + first), grad_output.row_stride,
                         std::min(panel_width, rows_.count - first), call_.shape.value_dim, 1.0F,
                         work_.grad_output_panels + first * call_.shape.value_dim);
    }
    const auto pack_tile = [this](const ConstView& view, Index width, float* columns) noexcept {
      return pack_columns(view.row(rows_.batch, rows_.head, rows_.first_query), view.row_stride, rows_.count, width,
                          columns, tile_queries * panel_width);
    };
    queries_are_finite_ = pack_tile(call_.inputs.queries, call_.shape.head_dim, work_.query_columns);
    grad_outputs_are_finite_ = pack_tile(grad_output, call_.shape.value_dim, work_.grad_output_columns);
  }

  void clear_bias_gradients() const noexcept {
    if (run_.bias_gradients.data == nullptr) return;
    for (Index row = 0; row < rows_.count; ++row) {
      std::fill_n(run_.bias_gradients.row(rows_.batch, rows_.head, rows_.first_query + row) + part_.from, part_.count(),
                  0.0F);
    }
  }

  [[nodiscard]] static Index place(Index key, Index row) noexcept { return (key % block_keys) * tile_queries + row; }

  void take_block(KeyRange keys) noexcept {
    bool seen = false;
    for (Index first = 0; first < rows_.count; first += panel_width) seen = take_panel(keys, first) || seen;
    if (!seen) return;
    find_segments(keys);
    add_products(work_.scores.scores, work_.grad_output_columns, grad_outputs_are_finite_, run_.value_width,
                 work_.grad_values);
    add_products(work_.gradients, work_.query_columns, queries_are_finite_, run_.key_width, work_.grad_keys);
    if (work_.block_is_finite[(keys.from - part_.from) / block_keys]) {
      add_query_gradients(keys);
    } else {
      add_query_gradients_carefully(keys);
    }
  }

  /// Weights (with dropout) and gradients of scores of one panel; 0 for keys that none of its rows sees.
  bool take_panel(KeyRange block, Index first) noexcept {
    float* weights = work_.scores.scores;
    float* gradients = work_.gradients;
    const KeyRange keys = masked_scores_of_panel(call_, source_, rows_, block, first, work_.scores);
    const KeyRange before{block.from, keys.empty() ? block.to : keys.from};
    const KeyRange after{keys.empty() ? block.to : keys.to, block.to};
    for (const KeyRange& hidden : {before, after}) {
      if (hidden.empty()) continue;
      fill_zero(weights + place(hidden.from, first), hidden.count());
      fill_zero(gradients + place(hidden.from, first), hidden.count());
    }
    if (keys.empty()) return false;
    differentiate(keys, first);
    return true;
  }

  void differentiate(KeyRange keys, Index first) noexcept {
    alignas(64) static constexpr float zeros[panel_width] = {};
    const Index value_dim = call_.shape.value_dim;
    const ConstView& values = call_.inputs.values;
    const Index kv_head = rows_.head * call_.shape.kv_heads / call_.shape.heads;
    float* weights = work_.scores.scores + place(keys.from, first);
    float* gradients = work_.gradients + place(keys.from, first);
    multiply_rows(values.row(rows_.batch, kv_head, keys.from), values.row_stride, keys.count(),
                  work_.grad_output_panels + first * value_dim, value_dim, zeros, gradients, tile_queries);
    if (dropout_.wanted()) {
      softmax_gradients_dropped(weights, gradients, keys.count(), keys.from, log_sum_exp_ + first, delta_ + first,
                                dropout_.lanes(first), dropout_.rule());
    } else {
      softmax_gradients(weights, gradients, keys.count(), log_sum_exp_ + first, delta_ + first);
    }
    if (run_.bias_gradients.data != nullptr) {
      unpack_query_lanes(gradients, std::min(panel_width, rows_.count - first), keys.count(),
                         run_.bias_gradients.row(rows_.batch, rows_.head, rows_.first_query + first) + keys.from,
                         run_.bias_gradients.row_stride);
    }
    if (call_.scores.softcap > 0.0F) {
      uncap_gradients(gradients, work_.scores.capped + place(keys.from, first), keys.count(), call_.scores.softcap);
    }
  }

  void find_segments(KeyRange keys) noexcept {
    segment_count_ = 0;
    for (Index from = keys.from; from < keys.to; from += segment_keys) {
      Segment next;
      next.keys = intersect(keys, {static_cast<std::int32_t>(from), static_cast<std::int32_t>(from + segment_keys)});
      const auto sees = [&](Index row) { return !intersect(next.keys, {rows_.from[row], rows_.to[row]}).empty(); };
      while (next.first_row < rows_.count && !sees(next.first_row)) ++next.first_row;
      next.end_row = rows_.count;
      while (next.end_row > next.first_row && !sees(next.end_row - 1)) --next.end_row;
      if (next.first_row == next.end_row) continue;
      Segment* last = segment_count_ > 0 ? segments_ + segment_count_ - 1 : nullptr;
      if (last != nullptr && last->keys.to == next.keys.from && last->first_row == next.first_row &&
          last->end_row == next.end_row) {
        last->keys.to = next.keys.to;
      } else {
        segments_[segment_count_++] = next;
      }
    }
  }

  /// grads[key] += Σ over the tile's rows of factors[key][row] · columns[row].
  void add_products(const float* factors, const float* columns, bool finite, Index width, float* grads) const noexcept {
    const auto add = [finite](const float* rows, Index row_count, const float* panel, Index depth, float* out,
                              Index out_stride) noexcept {
      if (finite) return multiply_rows(rows, tile_queries, row_count, panel, depth, nullptr, out, out_stride);
      add_nonzero_products(rows, tile_queries, row_count, panel, depth, out, out_stride);
    };
    for (Index column = 0; column < width; column += panel_width) {
      const float* panel = columns + column * tile_queries;
      for (Index number = 0; number < segment_count_; ++number) {
        const Segment& segment = segments_[number];
        add(factors + place(segment.keys.from, segment.first_row), segment.keys.count(),
            panel + segment.first_row * panel_width, segment.end_row - segment.first_row,
            grads + (segment.keys.from - part_.from) * width + column, width);
      }
    }
  }

  [[nodiscard]] const float* key_panel(Index column, Index key) const noexcept {
    return work_.key_columns + column * run_.part_keys + (key - part_.from) * panel_width;
  }

  void add_query_gradients(KeyRange keys) const noexcept {
    alignas(64) static constexpr float ones[] = {1, 1, 1, 1, 1, 1};
    static_assert(std::size(ones) >= wide_rows);
    const Index rows_of_group = rows_at_once();
    for (Index column = 0; column < run_.key_width; column += panel_width) {
      for (Index first = 0; first < rows_.count; first += rows_of_group) {
        const Index row_count = std::min(rows_of_group, rows_.count - first);
        const KeyRange range = intersect(keys, rows_.hull(first, row_count));
        if (range.empty()) continue;
        accumulate_values(work_.gradients + place(range.from, first), row_count, key_panel(column, range.from),
                          range.count(), ones, work_.grad_queries + first * run_.key_width + column, run_.key_width);
      }
    }
  }

  /// Where keys hold NaN or ±∞: each row only takes part in what it sees.
  void add_query_gradients_carefully(KeyRange keys) const noexcept {
    for (Index row = 0; row < rows_.count; ++row) {
      static_cast<void>(visible_keys(call_, rows_, row, keys, work_.scores.visible));
      for (Index column = 0; column < run_.key_width; column += panel_width) {
        accumulate_visible_values(work_.gradients + place(keys.from, row), work_.scores.visible,
                                  key_panel(column, keys.from), keys.count(), 1.0F,
                                  work_.grad_queries + row * run_.key_width + column);
      }
    }
  }

  const BackwardRun& run_;
  const AttentionCall& call_;
  const KeySource& source_;
  const TileRows& rows_;
  const KeyRange part_;
  BackwardWorkspace& work_;
  const TileDropout dropout_;
  float log_sum_exp_[tile_queries];  ///< +∞ in lanes whose weights are 0
  float delta_[tile_queries];
  bool queries_are_finite_ = false;
  bool grad_outputs_are_finite_ = false;
  Segment segments_[most_segments];
  Index segment_count_ = 0;
};

}  // namespace

void backward_tile(const BackwardRun& run, const KeySource& source, const TileRows& rows, KeyRange part,
                   BackwardWorkspace& work) noexcept {
  TileBackward(run, source, rows, part, work).compute();
}

double grad_output_times_output(const AttentionBackwardCall& call, Index batch, Index head, Index query) noexcept {
  const float* gradient = call.grad_output.row(batch, head, query);
  const float* output = call.output.row(batch, head, query);
  double sum = 0.0;
  for (Index c = 0; c < call.forward.shape.value_dim; ++c) sum += static_cast<double>(gradient[c]) * output[c];
  return sum;
}

}  // namespace lookback
