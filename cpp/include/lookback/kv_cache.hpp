#pragma once

#include <cstddef>
#include <cstdint>

#include "lookback/status.hpp"
#include "lookback/views.hpp"

namespace lookback {

enum class CacheType : int { float32 = 0, int8 = 1 };

struct KvCacheShape {
  Index batch = 1;
  Index kv_heads = 1;
  Index head_dim = 1;
  Index value_dim = 1;
  Index capacity = 1;  ///< tokens per batch row
  CacheType type = CacheType::float32;
  bool rolling = false;  ///< the oldest tokens make room for new ones
};

/// Keys and values of tokens seen so far, in memory of the caller's that never moves or grows. Rows of a batch may have different
/// lengths. Token p of a row lies in slot p mod capacity, each head's slots side by side: [B, Hkv, capacity, D]. With int8 every key
/// row and every value row has one scale, max|x| / 127, so that an element is off by at most half of it.
///
/// This is a view: copying it copies no tokens. Everything is relative to `memory`, so the bytes may be copied elsewhere.
class KvCache {
public:
  KvCache() noexcept = default;
  /// `memory`, aligned to 64, was given to create() before, or holds a copy of such memory.
  explicit KvCache(void* memory) noexcept;

  /// Bytes of a cache. A double, so that a size beyond the address space is a number and not an overflow.
  [[nodiscard]] static double bytes(const KvCacheShape& shape) noexcept;
  /// Lays out an empty cache in `memory`, bytes(shape) bytes aligned to 64.
  static Status create(const KvCacheShape& shape, void* memory) noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return memory_ != nullptr; }
  [[nodiscard]] void* memory() const noexcept { return memory_; }
  [[nodiscard]] const KvCacheShape& shape() const noexcept { return shape_; }
  /// Tokens seen by each row, evicted ones included: [B].
  [[nodiscard]] std::int32_t* lengths() const noexcept { return lengths_; }
  /// Position of each row's oldest token that is still there: [B].
  [[nodiscard]] std::int32_t* first_positions() const noexcept { return first_positions_; }
  /// The largest of lengths().
  [[nodiscard]] Index length() const noexcept;
  /// The smallest of first_positions(): the position of column 0 wherever the cache is seen as a table of columns.
  [[nodiscard]] Index first_position() const noexcept;
  /// Columns of that table: length() − first_position().
  [[nodiscard]] Index columns() const noexcept { return length() - first_position(); }
  /// Whether some token was said not to be real.
  [[nodiscard]] bool has_key_mask() const noexcept;

  /// Tokens to append.
  struct Tokens {
    ConstView keys;    ///< [B, Hkv, count, D]
    ConstView values;  ///< [B, Hkv, count, Dv]
    Index count = 0;
    const std::int32_t* key_lengths =
        nullptr;                             ///< [B]: valid tokens of each row (only these are stored); nullptr = all
    const std::uint8_t* key_mask = nullptr;  ///< [B, count], 1 = a real token; remembered
  };

  /// cache_full where a row would not fit and the cache does not roll; then nothing has changed.
  [[nodiscard]] Status check_append(const Tokens& tokens) const noexcept;
  Status append(const Tokens& tokens) noexcept;

  /// Forgets the tokens from position `length` on, of every row. evicted if that lies below a row's first position. What a
  /// rolling cache has evicted does not come back: until enough tokens have followed, an attention whose window reaches it is refused.
  Status truncate(Index length) noexcept;
  void reset() noexcept;

  /// The table as float32: keys [B, Hkv, columns(), D], values [B, Hkv, columns(), Dv]; 0 where a row has no token.
  void read(float* keys, float* values) const noexcept;

  /// Bytes that save() writes: a header and the slots in use.
  [[nodiscard]] double saved_bytes() const noexcept;
  void save(std::uint8_t* target) const noexcept;
  /// Takes what save() of a cache of the same shape wrote. invalid_cache where it is none; then nothing has changed.
  Status load(const std::uint8_t* source, double byte_count) noexcept;

  /// Stored rows of one head. Exactly one of `floats` and `bytes` is there; a byte row has its factor in `scales`.
  struct Rows {
    const float* floats = nullptr;
    const std::int8_t* bytes = nullptr;
    const float* scales = nullptr;
    Index stride = 0;
  };
  /// The rows of the slots from `slot` on.
  [[nodiscard]] Rows key_rows(Index batch, Index kv_head, Index slot) const noexcept;
  [[nodiscard]] Rows value_rows(Index batch, Index kv_head, Index slot) const noexcept;
  /// The remembered key mask of a row: [capacity], by slot.
  [[nodiscard]] const std::uint8_t* key_mask(Index batch) const noexcept { return key_mask_ + batch * shape_.capacity; }

private:
  struct Header;
  [[nodiscard]] Header* header() const noexcept;
  [[nodiscard]] Index slots_in_use() const noexcept;
  template <typename Visit>
  void visit_saved_parts(Visit visit) const noexcept;

  void* memory_ = nullptr;
  KvCacheShape shape_;
  std::int32_t* lengths_ = nullptr;
  std::int32_t* first_positions_ = nullptr;
  std::uint8_t* key_mask_ = nullptr;
  void* keys_ = nullptr;
  void* values_ = nullptr;
  float* key_scales_ = nullptr;
  float* value_scales_ = nullptr;
};

}  // namespace lookback
