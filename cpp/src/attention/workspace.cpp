#include "attention/workspace.hpp"

#include <algorithm>
#include <cmath>

#include "attention/decode.hpp"

namespace lookback {
namespace {

using namespace kernels;

constexpr double alignment = 64;

/// Hands out consecutive parts. A double counts the bytes, so that a size beyond the address space is still a number.
class Planner {
public:
  explicit Planner(void* memory) noexcept : next_(static_cast<char*>(memory)) {}

  template <typename T>
  T* take(double count) noexcept {
    const double bytes = std::ceil(count * sizeof(T) / alignment) * alignment;
    bytes_ += bytes;
    if (next_ == nullptr) return nullptr;
    char* part = next_;
    next_ += static_cast<std::size_t>(bytes);  // not an Index: on 32 bits a part may be larger than that
    return reinterpret_cast<T*>(part);
  }

  [[nodiscard]] double bytes() const noexcept { return bytes_; }

private:
  char* next_;
  double bytes_ = 0;
};

double plan(const AttentionCall& call, Planner& planner, Workspace& parts) noexcept {
  const AttentionShape& shape = call.shape;
  const auto depth = static_cast<double>(shape.head_dim);
  const auto key_length = static_cast<double>(shape.key_length);
  const auto blocks = static_cast<double>(block_count(shape.key_length));
  parts.value_panel_count = round_up(shape.value_dim, panel_width) / panel_width;
  parts.value_panel_stride = shape.key_length * panel_width;
  parts.accumulator_stride = parts.value_panel_count * panel_width;
  parts.query_panels = planner.take<float>(depth * tile_queries);
  parts.scores = planner.take<float>(static_cast<double>(block_keys * tile_queries));
  parts.accumulators =
      planner.take<float>(static_cast<double>(tile_queries) * static_cast<double>(parts.accumulator_stride));
  if (!is_decode(call)) {
    parts.value_panels = planner.take<float>(static_cast<double>(parts.accumulator_stride) * key_length);
  }
  parts.block_maxima = planner.take<float>(blocks * tile_queries);
  parts.block_is_finite = planner.take<std::uint8_t>(blocks);
  parts.visible = planner.take<std::uint8_t>(static_cast<double>(panel_width * block_keys));
  parts.state = planner.take<RowState>(1);
  parts.correction = planner.take<float>(tile_queries);
  if (block_count(shape.key_length) > group_blocks) {
    parts.totals =
        planner.take<float>(static_cast<double>(tile_queries) * static_cast<double>(parts.accumulator_stride));
    parts.total_state = planner.take<RowState>(1);
  }
  if (call.inputs.cache && call.inputs.cache.shape().type == CacheType::int8) {
    const Index width = std::max(shape.head_dim, shape.value_dim);
    parts.converted_rows = planner.take<float>(static_cast<double>(block_keys) * static_cast<double>(width));
  }
  if (call.outputs.summary.wanted()) parts.weight_rows = planner.take<float>(tile_queries * key_length);
  return planner.bytes();
}

double plan(const AttentionCall& call, Planner& planner, CacheWorkspace& parts) noexcept {
  if (!call.inputs.cache) return 0;
  const AttentionShape& shape = call.shape;
  const auto batch = static_cast<double>(shape.batch);
  parts.offsets = planner.take<std::int32_t>(batch);
  parts.starts = planner.take<std::int32_t>(batch);
  parts.ends = planner.take<std::int32_t>(batch);
  parts.key_mask = planner.take<std::uint8_t>(batch * static_cast<double>(shape.key_length));
  const KvCacheShape& cache = call.inputs.cache.shape();
  if (cache.rolling && cache.type == CacheType::int8) {
    const double tokens = batch * static_cast<double>(shape.kv_heads) * static_cast<double>(call.inputs.new_length);
    parts.new_keys = planner.take<float>(tokens * static_cast<double>(shape.head_dim));
    parts.new_values = planner.take<float>(tokens * static_cast<double>(shape.value_dim));
  }
  return planner.bytes();
}

}  // namespace

// Sizes come from the same plan as places: it is carried out without memory.
Workspace::Workspace(const AttentionCall& call, void* memory) noexcept {
  Planner planner(memory);
  plan(call, planner, *this);
}

double Workspace::bytes(const AttentionCall& call) noexcept {
  Planner planner(nullptr);
  Workspace parts(call, nullptr);
  return plan(call, planner, parts);
}

CacheWorkspace::CacheWorkspace(const AttentionCall& call, void* memory) noexcept {
  Planner planner(memory);
  plan(call, planner, *this);
}

double CacheWorkspace::bytes(const AttentionCall& call) noexcept {
  Planner planner(nullptr);
  CacheWorkspace parts(call, nullptr);
  return plan(call, planner, parts);
}

double attention_workspace_bytes(const AttentionCall& call) noexcept {
  return CacheWorkspace::bytes(call) + Workspace::bytes(call);
}

}  // namespace lookback
