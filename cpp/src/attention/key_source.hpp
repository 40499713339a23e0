#pragma once

// Where the keys and values of one head lie: in the caller's operands, or in the slots of a cache, in as many runs as they are
// contiguous (a rolling cache wraps around, and new tokens follow it). Which run a float32 key is in changes no bit of the result; the
// weights of int8 values are rounded run by run.

#include "attention/visibility.hpp"
#include "attention/workspace.hpp"
#include "lookback/attention.hpp"

namespace lookback {

class KeySource {
public:
  /// With a cache, `call` is what columns_of_cache made of the caller's: visibility says where each row's tokens begin and end.
  KeySource(const AttentionCall& call, Index batch, Index kv_head) noexcept;

  struct Run {
    KeyRange columns;
    KvCache::Rows keys;  ///< row of columns.from
    KvCache::Rows values;
  };
  [[nodiscard]] const Run* begin() const noexcept { return runs_; }
  [[nodiscard]] const Run* end() const noexcept { return runs_ + count_; }

  /// Whether keys have to be converted to float32 before a tile can read them.
  [[nodiscard]] bool needs_conversion() const noexcept { return needs_conversion_; }

private:
  void add(KeyRange columns, const KvCache::Rows& keys, const KvCache::Rows& values) noexcept;

  Run runs_[3];
  Index count_ = 0;
  bool needs_conversion_ = false;
};

}  // namespace lookback
