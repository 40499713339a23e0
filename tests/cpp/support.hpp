#pragma once

// What the suites share: numbers from a seed, buffers of an exact size (so that the sanitizers see a byte too many),
// comparisons.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "kernels/tile.hpp"

namespace lookback::test {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
/// What outputs hold before a call: no calculation gives it.
inline constexpr float untouched = -1.2345e30F;

/// Deterministic on every platform: only the engine's bits are used, no std distribution.
class Random {
public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  /// Decisions of a fuzzer come first, two bytes each; when they are used up, those of an engine follow.
  Random(const std::uint8_t* decisions, std::size_t size) : decisions_(decisions), left_(size / 2) {}

  std::uint32_t bits() {
    if (left_ == 0) return static_cast<std::uint32_t>(engine_());
    --left_;
    const std::uint32_t low = *decisions_++;
    const std::uint32_t decision = low | static_cast<std::uint32_t>(*decisions_++) << 8;
    return decision * 0x9e3779b1U;  // spread over all bits
  }
  /// 0 … count − 1.
  Index below(Index count) { return static_cast<Index>(bits() % static_cast<std::uint32_t>(count)); }
  bool chance(int percent) { return below(100) < percent; }
  /// Uniform in [−bound, bound).
  float within(float bound) { return bound * (static_cast<float>(bits() >> 8) * 0x1p-23F - 1.0F); }
  std::vector<float> vector(Index count, float bound = 1.0F) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = within(bound);
    return values;
  }

private:
  std::mt19937 engine_;
  const std::uint8_t* decisions_ = nullptr;
  std::size_t left_ = 0;
};

/// Every length from 0 to 4 tiles and 3, and primes beyond.
inline std::vector<Index> tail_lengths(Index tile) {
  std::vector<Index> lengths;
  for (Index length = 0; length <= 4 * tile + 3; ++length) lengths.push_back(length);
  for (const Index prime : {37, 61, 97, 131, 257}) {
    if (prime > 4 * tile + 3) lengths.push_back(prime);
  }
  return lengths;
}

/// Floats that begin 4 bytes off every larger alignment and end exactly at the end of their allocation.
class Unaligned {
public:
  explicit Unaligned(Index count, float value = 0.0F) : storage_(static_cast<std::size_t>(count) + 1, value) {}
  explicit Unaligned(const std::vector<float>& values) : storage_(values) { storage_.insert(storage_.begin(), 0.0F); }

  float* data() { return storage_.data() + 1; }
  float& operator[](Index index) { return storage_[static_cast<std::size_t>(index) + 1]; }
  [[nodiscard]] Index size() const { return static_cast<Index>(storage_.size()) - 1; }
  [[nodiscard]] std::vector<float> values() const { return {storage_.begin() + 1, storage_.end()}; }

private:
  std::vector<float> storage_;
};

/// Scratch memory of exactly `bytes` bytes at a multiple of 64, full of NaN patterns.
class Scratch {
public:
  explicit Scratch(double bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    memory_ = ::operator new(bytes_, std::align_val_t{64});
    std::memset(memory_, 0xff, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { ::operator delete(memory_, std::align_val_t{64}); }

  [[nodiscard]] void* data() const { return memory_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
  std::size_t bytes_;
  void* memory_;
};

/// A multiply-add as this build's batches do it, for loops that give the same bits.
inline float multiply_add(float a, float b, float c) {
  static const bool fused = simd::rounds_once();
  if (fused) return std::fma(a, b, c);
  const float product = a * b;
  return product + c;
}

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// Equal bit for bit, except that one NaN is as good as another.
inline bool same_bits(float a, float b) { return bits_of(a) == bits_of(b) || (a != a && b != b); }

inline ::testing::AssertionResult all_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " elements";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) {
      return ::testing::AssertionFailure() << "element " << i << " of " << a.size() << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult all_near(const std::vector<float>& actual, const std::vector<double>& expected,
                                           double tolerance) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure() << actual.size() << " elements, not " << expected.size();
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!(std::abs(static_cast<double>(actual[i]) - expected[i]) <= tolerance)) {
      return ::testing::AssertionFailure()
             << "element " << i << ": " << actual[i] << ", not " << expected[i] << " ± " << tolerance;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace lookback::test
