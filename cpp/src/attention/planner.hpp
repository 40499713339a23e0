#pragma once

#include <cmath>
#include <cstddef>

namespace lookback {

/// Hands out consecutive parts of scratch memory, each at a multiple of 64 bytes; without memory it only counts. A double counts the bytes, so
/// that a size beyond the address space is still a number.
class Planner {
public:
  explicit Planner(void* memory) noexcept : next_(static_cast<char*>(memory)) {}

  template <typename T>
  T* take(double count) noexcept {
    constexpr double alignment = 64;
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

}  // namespace lookback
