/**
 * What this machine can do at most, measured from inside wasm.
 *
 * multiply_add: independent sums that never leave their registers, 8 floating-point operations each and iteration, in two forms. Chains
 * s = s·a + b wait for a multiplication and an addition each time; tiles s = s + x·a wait for an addition only, but need their x from the
 * first-level cache. Start values and operands come from the caller and all sums are stored at the end, so nothing can be hoisted, merged or
 * dropped. Which form and number is best depends on the CPU's latencies and on the engine's registers: the caller tries all.
 *
 * read_memory: adds up memory, as one stream or as several that advance side by side (hardware prefetchers like the one or the other).
 */
#include <cstddef>
#include <cstdint>

#include <utility>

namespace {

using f32x4 = float __attribute__((vector_size(16)));

inline f32x4 splat(float value) { return f32x4{value, value, value, value}; }

inline f32x4 multiply_add_once(f32x4 s, f32x4 a, f32x4 b) {
#if defined(LOOKBACK_RELAXED_SIMD)
  return __builtin_wasm_relaxed_madd_f32x4(s, a, b);
#else
  return s * a + b;
#endif
}

inline f32x4 add_product(f32x4 s, f32x4 x, f32x4 a) {
#if defined(LOOKBACK_RELAXED_SIMD)
  return __builtin_wasm_relaxed_madd_f32x4(x, a, s);
#else
  return s + x * a;
#endif
}

template <std::size_t... Chain>
void run_chains(std::index_sequence<Chain...> /*chains*/, int iterations, f32x4 a, f32x4 b, f32x4* state) {
  f32x4 s[] = {state[Chain]...};
  for (int i = 0; i < iterations; ++i) {
    ((s[Chain] = multiply_add_once(s[Chain], a, b)), ...);
  }
  ((state[Chain] = s[Chain]), ...);
}

/** Functions of their own, called often: an engine without on-stack replacement optimises nothing else. */
template <int Chains>
__attribute__((noinline)) void chains_of(int iterations, float a, float b, f32x4* state) {
  run_chains(std::make_index_sequence<Chains>{}, iterations, splat(a), splat(b), state);
}

/** Four rows × two vectors, the operands of eight sums: x comes from memory, a stays in registers. */
__attribute__((noinline)) void tile(int iterations, const float* a, const f32x4* x, f32x4* state) {
  f32x4 s[8];
#pragma clang loop unroll(full)
  for (int n = 0; n < 8; ++n) s[n] = state[n];
  const f32x4 factor[4] = {splat(a[0]), splat(a[1]), splat(a[2]), splat(a[3])};
#pragma clang loop unroll(disable)
  for (int i = 0; i < iterations; ++i) {
    const f32x4* at = x + (i & 31) * 2;
    const f32x4 first = at[0];
    const f32x4 second = at[1];
#pragma clang loop unroll(full)
    for (int n = 0; n < 4; ++n) {
      s[2 * n] = add_product(s[2 * n], first, factor[n]);
      s[2 * n + 1] = add_product(s[2 * n + 1], second, factor[n]);
    }
  }
#pragma clang loop unroll(full)
  for (int n = 0; n < 8; ++n) state[n] = s[n];
}

constexpr int loads = 8;  // independent sums, so that no addition waits for the one before

template <int Streams>
__attribute__((noinline)) float read_streams(const f32x4* data, std::size_t vectors) {
  constexpr int each = loads / Streams;
  const std::size_t length = vectors / Streams;
  f32x4 sums[loads] = {};
  for (std::size_t i = 0; i + each <= length; i += each) {
#pragma clang loop unroll(full)
    for (int stream = 0; stream < Streams; ++stream) {
#pragma clang loop unroll(full)
      for (int n = 0; n < each; ++n) {
        sums[stream * each + n] += data[stream * length + i + n];
      }
    }
  }
  f32x4 total = {};
  for (const f32x4& sum : sums) {
    total += sum;
  }
  return total[0] + total[1] + total[2] + total[3];
}

alignas(16) f32x4 states[16];
alignas(16) f32x4 operands[64];

}  // namespace

extern "C" {

/** The floats that the chains start from and end in: 4 of each chain. */
__attribute__((export_name("chain_state"))) float* chain_state() { return reinterpret_cast<float*>(states); }

/** The vectors that a tile multiplies by. */
__attribute__((export_name("tile_operands"))) float* tile_operands() { return reinterpret_cast<float*>(operands); }

/** 8 · 8 · iterations operations; `factors` are four floats. */
__attribute__((export_name("multiply_add_tile"))) void multiply_add_tile(int iterations, const float* factors) {
  tile(iterations, factors, operands, states);
}

/** 8 · chains · iterations operations; other numbers of chains than these do nothing and give 0. */
__attribute__((export_name("multiply_add"))) int multiply_add(int chains, int iterations, float a, float b) {
  switch (chains) {
    case 8: chains_of<8>(iterations, a, b, states); return chains;
    case 10: chains_of<10>(iterations, a, b, states); return chains;
    case 12: chains_of<12>(iterations, a, b, states); return chains;
    case 13: chains_of<13>(iterations, a, b, states); return chains;
    case 14: chains_of<14>(iterations, a, b, states); return chains;
    default: return 0;
  }
}

/** The sum of `bytes` bytes of floats, a multiple of 512. */
__attribute__((export_name("read_memory"))) float read_memory(const float* data, std::size_t bytes, int streams) {
  const auto* vectors = reinterpret_cast<const f32x4*>(data);
  const std::size_t count = bytes / sizeof(f32x4);
  switch (streams) {
    case 2: return read_streams<2>(vectors, count);
    case 4: return read_streams<4>(vectors, count);
    default: return read_streams<1>(vectors, count);
  }
}
}
