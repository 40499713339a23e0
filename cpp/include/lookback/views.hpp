#pragma once

#include <cstddef>
#include <cstdint>

namespace lookback {

/// Lengths, indices and strides. Strides are in elements, never bytes.
using Index = std::ptrdiff_t;

/// A float32 operand seen as [batch, heads, length, width]; the last dimension is contiguous. With the strides of
/// [B, L, heads·width] the folded layout is read in place.
template <typename T>
struct BasicView {
  T* data = nullptr;
  Index batch_stride = 0;
  Index head_stride = 0;
  Index row_stride = 0;

  [[nodiscard]] T* row(Index batch, Index head, Index row) const noexcept {
    return data + batch * batch_stride + head * head_stride + row * row_stride;
  }
};

using ConstView = BasicView<const float>;
using MutableView = BasicView<float>;

/// A mask or bias seen as [batch, heads, queries, keys]; a stride of 0 broadcasts that dimension.
template <typename T>
struct BroadcastView {
  const T* data = nullptr;  ///< nullptr = absent
  Index batch_stride = 0;
  Index head_stride = 0;
  Index query_stride = 0;
  Index key_stride = 0;

  [[nodiscard]] const T* row(Index batch, Index head, Index query) const noexcept {
    return data + batch * batch_stride + head * head_stride + query * query_stride;
  }
};

using MaskView = BroadcastView<std::uint8_t>;
using BiasView = BroadcastView<float>;

}  // namespace lookback
