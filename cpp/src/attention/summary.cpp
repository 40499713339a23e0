#include "attention/summary.hpp"

#include <algorithm>
#include <cmath>

namespace lookback {
namespace {

/// The k largest weights by insertion; an earlier key keeps its place before an equal one.
void find_top(const float* weights, Index key_length, Index top_k, std::int32_t* indices, float* top) noexcept {
  std::fill_n(indices, top_k, -1);
  std::fill_n(top, top_k, 0.0F);
  for (Index key = 0; key < key_length; ++key) {
    const float weight = weights[key];
    if (!(weight > top[top_k - 1])) continue;
    Index place = top_k - 1;
    for (; place > 0 && weight > top[place - 1]; --place) {
      top[place] = top[place - 1];
      indices[place] = indices[place - 1];
    }
    top[place] = weight;
    indices[place] = static_cast<std::int32_t>(key);
  }
}

double entropy(const float* weights, Index key_length) noexcept {
  double sum = 0.0;
  for (Index key = 0; key < key_length; ++key) {
    const double weight = weights[key];
    // Not `> 0`: NaN is to be seen.
    if (weight != 0.0) sum -= weight * std::log(weight);
  }
  return sum;
}

double mean_distance(const float* weights, Index key_length, std::int32_t position) noexcept {
  double sum = 0.0;
  for (Index key = 0; key < key_length; ++key) {
    sum += static_cast<double>(weights[key]) * (static_cast<double>(position) - static_cast<double>(key));
  }
  return sum;
}

/// First element of pooled cell `cell` of `cells` over `length`: ⌊cell · length / cells⌋.
Index cell_start(Index cell, Index cells, Index length) noexcept {
  return static_cast<Index>(static_cast<std::int64_t>(cell) * length / cells);
}

void pool_row(const SummaryRequest& request, const AttentionShape& shape, Index query, const float* weights,
              float* map) noexcept {
  const Index rows = request.map_rows;
  // The cell r with ⌊r·Lq/R⌋ ≤ query < ⌊(r+1)·Lq/R⌋.
  auto cell = static_cast<Index>((static_cast<std::int64_t>(query) * rows + rows - 1) / shape.query_length);
  while (cell_start(cell + 1, rows, shape.query_length) <= query) ++cell;
  while (cell_start(cell, rows, shape.query_length) > query) --cell;
  const Index height = cell_start(cell + 1, rows, shape.query_length) - cell_start(cell, rows, shape.query_length);
  for (Index column = 0; column < request.map_columns; ++column) {
    double sum = 0.0;
    const Index end = cell_start(column + 1, request.map_columns, shape.key_length);
    for (Index key = cell_start(column, request.map_columns, shape.key_length); key < end; ++key) sum += weights[key];
    map[cell * request.map_columns + column] += static_cast<float>(sum / static_cast<double>(height));
  }
}

}  // namespace

void begin_summary(const AttentionCall& call) noexcept {
  const SummaryRequest& request = call.outputs.summary;
  if (request.map == nullptr) return;
  std::fill_n(request.map, call.shape.batch * call.shape.heads * request.map_rows * request.map_columns, 0.0F);
}

void summarise_row(const AttentionCall& call, const TileRows& rows, Index row, const float* weights) noexcept {
  const SummaryRequest& request = call.outputs.summary;
  const AttentionShape& shape = call.shape;
  const Index head = rows.batch * shape.heads + rows.head;
  const Index query = rows.first_query + row;
  const Index at = head * shape.query_length + query;
  if (request.top_indices != nullptr) {
    find_top(weights, shape.key_length, request.top_k, request.top_indices + at * request.top_k,
             request.top_weights + at * request.top_k);
  }
  if (request.entropy != nullptr) request.entropy[at] = static_cast<float>(entropy(weights, shape.key_length));
  if (request.distance != nullptr) {
    request.distance[at] = static_cast<float>(mean_distance(weights, shape.key_length, rows.position[row]));
  }
  if (request.map != nullptr) {
    pool_row(request, shape, query, weights, request.map + head * request.map_rows * request.map_columns);
  }
}

}  // namespace lookback
