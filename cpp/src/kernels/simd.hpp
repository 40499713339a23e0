#pragma once

// The seam: the only file that knows xsimd and the intrinsics. Above it everything is written once, in batches whose width is
// `lanes`, for SSE, AVX and wasm alike. Costs named in comments are instructions on wasm after V8.

#include <xsimd/xsimd.hpp>

#include "lookback/views.hpp"

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

namespace lookback::simd {

using Batch = xsimd::batch<float>;
using BatchBool = xsimd::batch_bool<float>;
using BatchInt = xsimd::batch<std::int32_t>;
/// 32 bits without a sign.
using BatchBits = xsimd::batch<std::uint32_t>;

inline constexpr Index lanes = static_cast<Index>(Batch::size);

/// Whether madd needs no register for its product.
#if defined(__wasm_simd128__) && !defined(__wasm_relaxed_simd__)
inline constexpr bool madd_is_one_instruction = false;
#else
inline constexpr bool madd_is_one_instruction = true;
#endif

inline Batch load(const float* source) noexcept { return Batch::load_unaligned(source); }
inline void store(float* target, Batch value) noexcept { value.store_unaligned(target); }

/// All lanes = *source: one load, without a trip through a scalar register.
inline Batch load_splat(const float* source) noexcept {
#if defined(__wasm_simd128__)
  return wasm_v128_load32_splat(source);
#else
  return Batch::broadcast(*source);
#endif
}

inline Batch splat(float value) noexcept { return Batch::broadcast(value); }

/// a·b + c; rounds once in the relaxed variant where the engine fuses, twice in the simd variant.
inline Batch madd(Batch a, Batch b, Batch c) noexcept {
#if defined(__wasm_relaxed_simd__)
  return wasm_f32x4_relaxed_madd(a, b, c);
#elif defined(__wasm_simd128__)
  return wasm_f32x4_add(wasm_f32x4_mul(a, b), c);
#else
  return xsimd::fma(a, b, c);
#endif
}

/// The larger of the two, `kept` where `other` is NaN: one instruction (xsimd::max orders NaN differently per architecture).
inline Batch max_keeping(Batch kept, Batch other) noexcept {
#if defined(__wasm_simd128__)
  return wasm_f32x4_pmax(kept, other);
#else
  return xsimd::select(kept < other, other, kept);
#endif
}

/// Keeps a pointer apart from others: loads then share it with constant offsets instead of one address calculation each.
template <typename T>
inline void pin(const T*& pointer) noexcept {
#if defined(__wasm_simd128__)
  asm volatile("" : "+r"(pointer));
#else
  static_cast<void>(pointer);
#endif
}

/// The same pointer, to something that the optimiser must believe may be anything.
template <typename T>
inline const T* opaque(const T* pointer) noexcept {
  asm("" : "+r"(pointer));
  return pointer;
}

inline Batch select(BatchBool condition, Batch if_true, Batch if_false) noexcept {
  return xsimd::select(condition, if_true, if_false);
}

/// The same by a comparison of integers.
inline Batch select_int(xsimd::batch_bool<std::int32_t> condition, Batch if_true, Batch if_false) noexcept {
  return xsimd::select(xsimd::batch_bool_cast<float>(condition), if_true, if_false);
}

inline BatchBits load_bits(const std::uint32_t* source) noexcept { return BatchBits::load_unaligned(source); }

/// value ≥ least, without a sign.
inline BatchBool at_least(BatchBits value, BatchBits least) noexcept {
#if defined(__wasm_simd128__)
  return BatchBool(wasm_u32x4_ge(value, least));
#else
  return xsimd::batch_bool_cast<float>(value >= least);
#endif
}

/// The lanes added pairwise: (0 + 2) + (1 + 3) and so on, in the same order everywhere.
inline float sum_of_lanes(Batch value) noexcept {
  alignas(64) float lane[lanes];
  value.store_aligned(lane);
  for (Index half = lanes / 2; half > 0; half /= 2) {
    for (Index i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

/// `lanes` numbers of 16 bits, each as an integer ≥ 0.
inline BatchInt load_uint16(const std::uint16_t* source) noexcept {
#if defined(__wasm_simd128__)
  return wasm_u32x4_load16x4(source);
#else
  alignas(64) std::int32_t values[lanes];
  for (Index lane = 0; lane < lanes; ++lane) values[lane] = source[lane];
  return BatchInt::load_aligned(values);
#endif
}

/// `lanes` bfloat16 numbers: they are the upper halves of floats.
inline Batch load_bf16(const std::uint16_t* source) noexcept {
  return xsimd::bitwise_cast<float>(load_uint16(source) << 16);
}

/// Constants of load_f16: in memory, because V8 rebuilds literal ones at each use inside a loop.
struct HalfConstants {
  std::int32_t sign_and_magnitude = static_cast<std::int32_t>(0x8fffe000U);
  std::int32_t magnitude = 0x0fffe000;
  std::int32_t largest_finite = 0x0f7fe000;
  std::int32_t infinity = 0x7f800000;
  float scale = 0x1p112F;
};

/// `lanes` IEEE half-precision numbers, exactly: sign, exponent and fraction move to their places in a float whose exponent is then too
/// small by 112, so it is multiplied by 2¹¹² (which normalises numbers below 2⁻¹⁴, too); ±∞ and NaN get the largest exponent.
inline Batch load_f16(const std::uint16_t* source, const HalfConstants* constants) noexcept {
#if defined(__wasm_simd128__)
  const v128_t moved =
      wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_load16x4(reinterpret_cast<const std::int16_t*>(source)), 13),
                    wasm_v128_load32_splat(&constants->sign_and_magnitude));
  const v128_t is_not_finite = wasm_i32x4_gt(wasm_v128_and(moved, wasm_v128_load32_splat(&constants->magnitude)),
                                             wasm_v128_load32_splat(&constants->largest_finite));
  return wasm_v128_or(wasm_f32x4_mul(moved, wasm_v128_load32_splat(&constants->scale)),
                      wasm_v128_and(is_not_finite, wasm_v128_load32_splat(&constants->infinity)));
#else
  const BatchInt half = load_uint16(source);
  const BatchInt magnitude = (half & BatchInt(0x7fff)) << 13;
  const Batch scaled = xsimd::bitwise_cast<float>(magnitude) * splat(constants->scale);
  const BatchInt infinity(constants->infinity);
  const BatchInt bits = xsimd::bitwise_cast<std::int32_t>(scaled) |
                        xsimd::select(magnitude > BatchInt(constants->largest_finite), infinity, BatchInt(0)) |
                        ((half & BatchInt(0x8000)) << 16);
  return xsimd::bitwise_cast<float>(bits);
#endif
}

/// A pair of 16-bit integers in each lane.
using BatchPairs = xsimd::batch<std::int32_t>;

#if !defined(__wasm_simd128__)
inline std::int32_t pair_of(std::int32_t one, std::int32_t other) noexcept {
  return static_cast<std::uint16_t>(one) | other * 65536;
}

/// Pair n = (one[n · stride], other[n · stride]).
template <typename Integer>
inline BatchPairs pairs_of(const Integer* one, const Integer* other, Index stride) noexcept {
  alignas(64) std::int32_t values[lanes];
  for (Index lane = 0; lane < lanes; ++lane) values[lane] = pair_of(one[lane * stride], other[lane * stride]);
  return BatchPairs::load_aligned(values);
}
#endif

/// 2 · lanes signed bytes as lanes pairs.
inline BatchPairs load_int8_pairs(const std::int8_t* source) noexcept {
#if defined(__wasm_simd128__)
  return wasm_i16x8_load8x8(source);
#else
  return pairs_of(source, source + 1, 2);
#endif
}

/// Two rows of 2 · lanes signed bytes as pairs (one's, the other's), the first lanes of them and the others.
inline void load_int8_interleaved(const std::int8_t* one, const std::int8_t* other, BatchPairs& first,
                                  BatchPairs& second) noexcept {
#if defined(__wasm_simd128__)
  const v128_t a = wasm_i16x8_load8x8(one);
  const v128_t b = wasm_i16x8_load8x8(other);
  first = wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  second = wasm_i16x8_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  first = pairs_of(one, other, 1);
  second = pairs_of(one + lanes, other + lanes, 1);
#endif
}

/// lanes pairs.
inline BatchPairs load_pairs(const std::int16_t* source) noexcept {
#if defined(__wasm_simd128__)
  return wasm_v128_load(source);
#else
  return pairs_of(source, source + 1, 2);
#endif
}

/// All lanes = the pair at *source.
inline BatchPairs load_splat_pair(const std::int16_t* source) noexcept {
#if defined(__wasm_simd128__)
  return wasm_v128_load32_splat(source);
#else
  return BatchPairs(pair_of(source[0], source[1]));
#endif
}

/// sum + a₀·b₀ + a₁·b₁ of the pairs, exactly.
inline BatchInt add_pair_products(BatchPairs a, BatchPairs b, BatchInt sum) noexcept {
#if defined(__wasm_simd128__)
  return wasm_i32x4_add(wasm_i32x4_dot_i16x8(a, b), sum);
#else
  return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

/// Exact up to 2²⁴, beyond that rounded to the nearest.
inline Batch to_float(BatchInt value) noexcept { return xsimd::to_float(value); }

/// Rounds to the nearest integers, ties to even, and stores them as 16 bits; |value| ≤ 32767, NaN gives any number.
inline void store_int16(std::int16_t* target, Batch value) noexcept {
#if defined(__wasm_simd128__)
  const v128_t rounded = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(value));
  wasm_v128_store64_lane(target, wasm_i16x8_narrow_i32x4(rounded, rounded), 0);
#else
  alignas(64) std::int32_t values[lanes];
  xsimd::nearbyint_as_int(value).store_aligned(values);
  for (Index lane = 0; lane < lanes; ++lane) target[lane] = static_cast<std::int16_t>(values[lane]);
#endif
}

/// Keys that visit_byte_columns takes at once.
inline constexpr Index byte_columns = 8;

/// Rows of bytes, 2 · lanes of them, seen key by key: calls visit(key, first, second) for byte_columns keys with the lanes whose byte
/// is not 0. On wasm an 8 × 8 transposition of bytes: 12 shuffles for 8 keys.
template <typename Visit>
inline void visit_byte_columns(const std::uint8_t* rows, Index row_stride, Visit visit) noexcept {
#if defined(__wasm_simd128__)
  v128_t row[8];
#pragma clang loop unroll(full)
  for (int r = 0; r < 8; ++r) row[r] = wasm_v128_load64_zero(rows + r * row_stride);
  v128_t pair[4];
#pragma clang loop unroll(full)
  for (int r = 0; r < 4; ++r) {
    pair[r] = wasm_i8x16_shuffle(row[2 * r], row[2 * r + 1], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  const v128_t upper[2] = {wasm_i16x8_shuffle(pair[0], pair[1], 0, 8, 1, 9, 2, 10, 3, 11),
                           wasm_i16x8_shuffle(pair[0], pair[1], 4, 12, 5, 13, 6, 14, 7, 15)};
  const v128_t lower[2] = {wasm_i16x8_shuffle(pair[2], pair[3], 0, 8, 1, 9, 2, 10, 3, 11),
                           wasm_i16x8_shuffle(pair[2], pair[3], 4, 12, 5, 13, 6, 14, 7, 15)};
  const v128_t zero = wasm_i8x16_splat(0);
  const auto visit_key = [&](Index key, v128_t lanes_of_key) {
    visit(key, BatchBool(wasm_i32x4_extend_low_i16x8(lanes_of_key)),
          BatchBool(wasm_i32x4_extend_high_i16x8(lanes_of_key)));
  };
#pragma clang loop unroll(full)
  for (int half = 0; half < 2; ++half) {
    const v128_t first = wasm_i8x16_ne(wasm_i32x4_shuffle(upper[half], lower[half], 0, 4, 1, 5), zero);
    const v128_t second = wasm_i8x16_ne(wasm_i32x4_shuffle(upper[half], lower[half], 2, 6, 3, 7), zero);
    visit_key(4 * half, wasm_i16x8_extend_low_i8x16(first));
    visit_key(4 * half + 1, wasm_i16x8_extend_high_i8x16(first));
    visit_key(4 * half + 2, wasm_i16x8_extend_low_i8x16(second));
    visit_key(4 * half + 3, wasm_i16x8_extend_high_i8x16(second));
  }
#else
  for (Index key = 0; key < byte_columns; ++key) {
    alignas(64) float shown[2 * lanes];
    for (Index lane = 0; lane < 2 * lanes; ++lane) shown[lane] = rows[lane * row_stride + key] != 0 ? 1.0F : 0.0F;
    const Batch one = splat(1.0F);
    visit(key, load(shown) == one, load(shown + lanes) == one);
  }
#endif
}

inline Batch tanh(Batch value) noexcept { return xsimd::tanh(value); }
inline Batch erf(Batch value) noexcept { return xsimd::erf(value); }
inline Batch square_root(Batch value) noexcept { return xsimd::sqrt(value); }
inline Batch absolute(Batch value) noexcept { return xsimd::abs(value); }
/// By equality: xsimd 13.2's batch != is wrong on wasm.
inline bool any_nan(Batch value) noexcept { return !xsimd::all(value == value); }

inline BatchInt bits_of(Batch value) noexcept { return xsimd::bitwise_cast<std::int32_t>(value); }
inline Batch float_of_bits(BatchInt bits) noexcept { return xsimd::bitwise_cast<float>(bits); }

/// Replaces the lanes × lanes matrix whose rows are given by its transpose. Loops that fill and empty it must be unrolled: what is indexed by
/// a variable lives in memory.
inline void transpose(Batch* rows) noexcept { xsimd::transpose(rows, rows + lanes); }

/// Whether multiply-add rounds once here: (1 + 2⁻¹²)² − 1 − 2⁻¹¹ is 2⁻²⁴ fused and 0 unfused. Opaque, so that it runs.
inline bool rounds_once() noexcept {
  volatile float factor = 1.0F + 0x1p-12F;
  volatile float addend = -(1.0F + 0x1p-11F);
  const float a = factor;
  const float c = addend;
  return madd(splat(a), splat(a), splat(c)).get(0) != 0.0F;
}

}  // namespace lookback::simd
