#include "attention/workspace.hpp"

namespace lookback {
namespace {

using namespace kernels;

constexpr Index alignment = 64;

/// Hands out consecutive parts. A double counts the bytes, so that a size beyond the address space is still a number.
class Planner {
 public:
  explicit Planner(void* memory) noexcept : next_(static_cast<char*>(memory)) {}

  template <typename T>
  T* take(double count) noexcept {
    const double rounded = count * sizeof(T) + alignment - 1;
    bytes_ += rounded;
    if (next_ == nullptr) return nullptr;
    char* part = next_;
    next_ += round_up(static_cast<Index>(count * sizeof(T)), alignment);
    return reinterpret_cast<T*>(part);
  }

  [[nodiscard]] double bytes() const noexcept { return bytes_; }

 private:
  char* next_;
  double bytes_ = 0;
};

double plan(const AttentionShape& shape, Planner& planner, Workspace& parts) noexcept {
  const auto depth = static_cast<double>(shape.head_dim);
  const auto blocks = static_cast<double>(block_count(shape.key_length));
  parts.value_panel_count = round_up(shape.value_dim, panel_width) / panel_width;
  parts.value_panel_stride = shape.key_length * panel_width;
  parts.accumulator_stride = parts.value_panel_count * panel_width;
  parts.query_panels = planner.take<float>(depth * tile_queries);
  parts.scores = planner.take<float>(static_cast<double>(block_keys * tile_queries));
  parts.accumulators = planner.take<float>(static_cast<double>(tile_queries * parts.accumulator_stride));
  parts.value_panels =
      planner.take<float>(static_cast<double>(parts.accumulator_stride) * static_cast<double>(shape.key_length));
  parts.block_maxima = planner.take<float>(blocks * tile_queries);
  parts.block_is_finite = planner.take<std::uint8_t>(blocks);
  parts.visible = planner.take<std::uint8_t>(static_cast<double>(panel_width * block_keys));
  parts.state = planner.take<RowState>(1);
  parts.correction = planner.take<float>(tile_queries);
  return planner.bytes();
}

}  // namespace

// The two constructors of Workspace share one plan: sizes are counted with a planner that has no memory.
Workspace::Workspace(const AttentionShape& shape, void* memory) noexcept {
  Planner planner(memory);
  plan(shape, planner, *this);
}

double Workspace::bytes(const AttentionShape& shape) noexcept {
  Planner planner(nullptr);
  Workspace parts(shape, nullptr);
  return plan(shape, planner, parts);
}

double attention_workspace_bytes(const AttentionCall& call) noexcept { return Workspace::bytes(call.shape); }

}  // namespace lookback
