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

/// The cell r with ⌊r·Lq/R⌋ ≤ query < ⌊(r+1)·Lq/R⌋.
Index cell_of(Index query, Index cells, Index length) noexcept {
  auto cell = static_cast<Index>((static_cast<std::int64_t>(query) * cells + cells - 1) / length);
  while (cell_start(cell + 1, cells, length) <= query) ++cell;
  while (cell_start(cell, cells, length) > query) --cell;
  return cell;
}

/// Where a head's tile leaves what belongs to the cell of an earlier tile.
float* rest_of(const AttentionCall& call, float* map_rests, Index head, Index first_query) noexcept {
  const Index tiles = (call.shape.query_length + kernels::tile_queries - 1) / kernels::tile_queries;
  return map_rests + (head * tiles + first_query / kernels::tile_queries) * call.outputs.summary.map_columns;
}

void pool_row(const AttentionCall& call, const TileRows& rows, Index row, const float* weights,
              float* map_rests) noexcept {
  const SummaryRequest& request = call.outputs.summary;
  const Index query_length = call.shape.query_length;
  const Index head = rows.batch * call.shape.heads + rows.head;
  const Index cell = cell_of(rows.first_query + row, request.map_rows, query_length);
  const Index start = cell_start(cell, request.map_rows, query_length);
  const Index height = cell_start(cell + 1, request.map_rows, query_length) - start;
  float* target = start < rows.first_query ? rest_of(call, map_rests, head, rows.first_query)
                                           : request.map + (head * request.map_rows + cell) * request.map_columns;
  for (Index column = 0; column < request.map_columns; ++column) {
    double sum = 0.0;
    const Index end = cell_start(column + 1, request.map_columns, call.shape.key_length);
    for (Index key = cell_start(column, request.map_columns, call.shape.key_length); key < end; ++key) {
      sum += weights[key];
    }
    target[column] += static_cast<float>(sum / static_cast<double>(height));
  }
}

}  // namespace

void begin_summary(const AttentionRun& run) noexcept {
  const SummaryRequest& request = run.call.outputs.summary;
  if (request.map == nullptr) return;
  const Index heads = run.call.shape.batch * run.call.shape.heads;
  std::fill_n(request.map, heads * request.map_rows * request.map_columns, 0.0F);
  if (run.map_rests != nullptr) std::fill_n(run.map_rests, heads * run.tile_count * request.map_columns, 0.0F);
}

void finish_summary(const AttentionRun& run) noexcept {
  const SummaryRequest& request = run.call.outputs.summary;
  if (run.map_rests == nullptr) return;
  const Index query_length = run.call.shape.query_length;
  for (Index head = 0; head < run.call.shape.batch * run.call.shape.heads; ++head) {
    for (Index query = kernels::tile_queries; query < query_length; query += kernels::tile_queries) {
      const Index cell = cell_of(query, request.map_rows, query_length);
      if (cell_start(cell, request.map_rows, query_length) == query) continue;  // no earlier tile has rows of it
      const float* rest = rest_of(run.call, run.map_rests, head, query);
      float* target = request.map + (head * request.map_rows + cell) * request.map_columns;
      for (Index column = 0; column < request.map_columns; ++column) target[column] += rest[column];
    }
  }
}

void summarise_row(const AttentionCall& call, const TileRows& rows, Index row, const float* weights,
                   float* map_rests) noexcept {
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
  if (request.map != nullptr) pool_row(call, rows, row, weights, map_rests);
}

}  // namespace lookback
