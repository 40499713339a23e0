#include "lookback/kv_cache.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "kernels/quantize.hpp"

namespace lookback {
namespace {

using namespace kernels;

constexpr std::uint32_t magic = 0x314B424C;  // "LBK1"
constexpr double alignment = 64;

double aligned(double bytes) noexcept { return std::ceil(bytes / alignment) * alignment; }

}  // namespace

struct KvCache::Header {
  std::uint32_t magic;
  std::int32_t batch, kv_heads, head_dim, value_dim, capacity, type, rolling;
  std::int32_t has_key_mask;
  std::int32_t saved_slots;  ///< in saved bytes: how many slots of each head follow
};

namespace {

/// Byte offsets of the parts.
struct Layout {
  double lengths, first_positions, key_mask, keys, values, key_scales, value_scales, end;

  Layout(const KvCacheShape& shape, double header_bytes) noexcept {
    const auto batch = static_cast<double>(shape.batch);
    const double tokens = batch * static_cast<double>(shape.kv_heads) * static_cast<double>(shape.capacity);
    const double element = shape.type == CacheType::int8 ? sizeof(std::int8_t) : sizeof(float);
    const double scales = shape.type == CacheType::int8 ? tokens * sizeof(float) : 0;
    lengths = aligned(header_bytes);
    first_positions = lengths + aligned(batch * sizeof(std::int32_t));
    key_mask = first_positions + aligned(batch * sizeof(std::int32_t));
    keys = key_mask + aligned(batch * static_cast<double>(shape.capacity));
    values = keys + aligned(tokens * static_cast<double>(shape.head_dim) * element);
    key_scales = values + aligned(tokens * static_cast<double>(shape.value_dim) * element);
    value_scales = key_scales + aligned(scales);
    end = value_scales + aligned(scales);
  }
};

template <typename T>
T* at(void* memory, double offset) noexcept {
  return reinterpret_cast<T*>(static_cast<std::uint8_t*>(memory) + static_cast<std::size_t>(offset));
}

}  // namespace

double KvCache::bytes(const KvCacheShape& shape) noexcept { return Layout(shape, sizeof(Header)).end; }

Status KvCache::create(const KvCacheShape& shape, void* memory) noexcept {
  for (const Index extent : {shape.batch, shape.kv_heads, shape.head_dim, shape.value_dim, shape.capacity}) {
    if (extent < 1 || extent > INT32_MAX) return Status::invalid_shape;
  }
  if (memory == nullptr) return Status::null_pointer;
  new (memory) Header{magic,
                      static_cast<std::int32_t>(shape.batch),
                      static_cast<std::int32_t>(shape.kv_heads),
                      static_cast<std::int32_t>(shape.head_dim),
                      static_cast<std::int32_t>(shape.value_dim),
                      static_cast<std::int32_t>(shape.capacity),
                      static_cast<std::int32_t>(shape.type),
                      shape.rolling ? 1 : 0,
                      0,
                      0};
  KvCache(memory).reset();
  return Status::ok;
}

KvCache::KvCache(void* memory) noexcept : memory_(memory) {
  const Header& head = *header();
  shape_ = {head.batch,       head.kv_heads, head.head_dim,
            head.value_dim,   head.capacity, static_cast<CacheType>(head.type),
            head.rolling != 0};
  const Layout layout(shape_, sizeof(Header));
  lengths_ = at<std::int32_t>(memory, layout.lengths);
  first_positions_ = at<std::int32_t>(memory, layout.first_positions);
  key_mask_ = at<std::uint8_t>(memory, layout.key_mask);
  keys_ = at<void>(memory, layout.keys);
  values_ = at<void>(memory, layout.values);
  if (shape_.type == CacheType::int8) {
    key_scales_ = at<float>(memory, layout.key_scales);
    value_scales_ = at<float>(memory, layout.value_scales);
  }
}

KvCache::Header* KvCache::header() const noexcept { return static_cast<Header*>(memory_); }

Index KvCache::length() const noexcept { return *std::max_element(lengths_, lengths_ + shape_.batch); }

Index KvCache::first_position() const noexcept {
  return *std::min_element(first_positions_, first_positions_ + shape_.batch);
}

bool KvCache::has_key_mask() const noexcept { return header()->has_key_mask != 0; }

namespace {

/// Rows from number `row` of a table on; float32 where there are no scales.
KvCache::Rows rows_from(const void* table, const float* scales, Index width, Index row) noexcept {
  if (scales == nullptr) return {static_cast<const float*>(table) + row * width, nullptr, nullptr, width};
  return {nullptr, static_cast<const std::int8_t*>(table) + row * width, scales + row, width};
}

Index tokens_of_row(const KvCache::Tokens& tokens, Index batch) noexcept {
  return tokens.key_lengths != nullptr ? tokens.key_lengths[batch] : tokens.count;
}

/// Rows that key_rows() and value_rows() gave are of the cache's own memory: here they are written.
void store_row(const KvCache::Rows& rows, const float* source, Index width) noexcept {
  if (rows.floats != nullptr) {
    std::copy_n(source, width, const_cast<float*>(rows.floats));
  } else {
    *const_cast<float*>(rows.scales) = quantize_row(source, width, const_cast<std::int8_t*>(rows.bytes));
  }
}

void load_row(const KvCache::Rows& rows, Index width, float* target) noexcept {
  if (rows.floats != nullptr) {
    std::copy_n(rows.floats, width, target);
  } else {
    dequantize_row(rows.bytes, width, *rows.scales, target);
  }
}

}  // namespace

KvCache::Rows KvCache::key_rows(Index batch, Index kv_head, Index slot) const noexcept {
  return rows_from(keys_, key_scales_, shape_.head_dim, (batch * shape_.kv_heads + kv_head) * shape_.capacity + slot);
}

KvCache::Rows KvCache::value_rows(Index batch, Index kv_head, Index slot) const noexcept {
  return rows_from(values_, value_scales_, shape_.value_dim,
                   (batch * shape_.kv_heads + kv_head) * shape_.capacity + slot);
}

Status KvCache::check_append(const Tokens& tokens) const noexcept {
  if (tokens.count < 0) return Status::invalid_shape;
  if (tokens.count > 0 && (tokens.keys.data == nullptr || tokens.values.data == nullptr)) return Status::null_pointer;
  for (Index batch = 0; batch < shape_.batch; ++batch) {
    const Index count = tokens_of_row(tokens, batch);
    if (count < 0 || count > tokens.count) return Status::invalid_range;
    // Subtracted, because on 32 bits the sum may not be an Index.
    if (!shape_.rolling && count > shape_.capacity - lengths_[batch]) return Status::cache_full;
    if (count >= INT32_MAX - lengths_[batch]) return Status::cache_full;
  }
  return Status::ok;
}

Status KvCache::append(const Tokens& tokens) noexcept {
  if (const Status status = check_append(tokens); status != Status::ok) return status;
  for (Index batch = 0; batch < shape_.batch; ++batch) {
    const Index count = tokens_of_row(tokens, batch);
    const Index end = lengths_[batch] + count;
    // Of more tokens than there are slots only the last ones will be there.
    for (Index token = std::max<Index>(0, count - shape_.capacity); token < count; ++token) {
      const Index slot = (lengths_[batch] + token) % shape_.capacity;
      for (Index head = 0; head < shape_.kv_heads; ++head) {
        store_row(key_rows(batch, head, slot), tokens.keys.row(batch, head, token), shape_.head_dim);
        store_row(value_rows(batch, head, slot), tokens.values.row(batch, head, token), shape_.value_dim);
      }
      const bool real = tokens.key_mask == nullptr || tokens.key_mask[batch * tokens.count + token] != 0;
      key_mask_[batch * shape_.capacity + slot] = real ? 1 : 0;
      if (!real) header()->has_key_mask = 1;
    }
    lengths_[batch] = static_cast<std::int32_t>(end);
    first_positions_[batch] = std::max(first_positions_[batch], static_cast<std::int32_t>(end - shape_.capacity));
  }
  return Status::ok;
}

Status KvCache::truncate(Index length) noexcept {
  if (length < 0) return Status::invalid_range;
  for (Index batch = 0; batch < shape_.batch; ++batch) {
    if (length < first_positions_[batch]) return Status::evicted;
  }
  for (Index batch = 0; batch < shape_.batch; ++batch) {
    lengths_[batch] = static_cast<std::int32_t>(std::min<Index>(lengths_[batch], length));
  }
  return Status::ok;
}

void KvCache::reset() noexcept {
  std::fill_n(lengths_, shape_.batch, 0);
  std::fill_n(first_positions_, shape_.batch, 0);
  header()->has_key_mask = 0;
}

void KvCache::read(float* keys, float* values) const noexcept {
  const Index first = first_position();
  const Index count = columns();
  for (Index batch = 0; batch < shape_.batch; ++batch) {
    for (Index head = 0; head < shape_.kv_heads; ++head) {
      for (Index column = 0; column < count; ++column) {
        const Index at = (batch * shape_.kv_heads + head) * count + column;
        const Index position = first + column;
        if (position < first_positions_[batch] || position >= lengths_[batch]) {
          std::fill_n(keys + at * shape_.head_dim, shape_.head_dim, 0.0F);
          std::fill_n(values + at * shape_.value_dim, shape_.value_dim, 0.0F);
          continue;
        }
        const Index slot = position % shape_.capacity;
        load_row(key_rows(batch, head, slot), shape_.head_dim, keys + at * shape_.head_dim);
        load_row(value_rows(batch, head, slot), shape_.value_dim, values + at * shape_.value_dim);
      }
    }
  }
}

Index KvCache::slots_in_use() const noexcept { return std::min(length(), shape_.capacity); }

/// Calls visit(address, bytes) for each contiguous part of the slots in use.
template <typename Visit>
void KvCache::visit_saved_parts(Visit visit) const noexcept {
  // Bytes are counted in std::size_t: on 32 bits a cache may be larger than Index says.
  const auto slots = static_cast<std::size_t>(slots_in_use());
  const std::size_t element = shape_.type == CacheType::int8 ? sizeof(std::int8_t) : sizeof(float);
  const std::size_t key_bytes = static_cast<std::size_t>(shape_.head_dim) * element;
  const std::size_t value_bytes = static_cast<std::size_t>(shape_.value_dim) * element;
  visit(lengths_, shape_.batch * sizeof(std::int32_t));
  visit(first_positions_, shape_.batch * sizeof(std::int32_t));
  for (Index batch = 0; batch < shape_.batch; ++batch) visit(key_mask_ + batch * shape_.capacity, slots);
  for (Index head = 0; head < shape_.batch * shape_.kv_heads; ++head) {
    const auto row = static_cast<std::size_t>(head * shape_.capacity);
    visit(static_cast<std::uint8_t*>(keys_) + row * key_bytes, slots * key_bytes);
    visit(static_cast<std::uint8_t*>(values_) + row * value_bytes, slots * value_bytes);
    if (shape_.type == CacheType::float32) continue;
    visit(key_scales_ + row, slots * sizeof(float));
    visit(value_scales_ + row, slots * sizeof(float));
  }
}

double KvCache::saved_bytes() const noexcept {
  double bytes = sizeof(Header);
  visit_saved_parts([&](const void*, std::size_t count) { bytes += static_cast<double>(count); });
  return bytes;
}

void KvCache::save(std::uint8_t* target) const noexcept {
  Header saved = *header();
  saved.saved_slots = static_cast<std::int32_t>(slots_in_use());
  std::memcpy(target, &saved, sizeof saved);
  target += sizeof saved;
  visit_saved_parts([&](const void* part, std::size_t count) {
    std::memcpy(target, part, count);
    target += count;
  });
}

Status KvCache::load(const std::uint8_t* source, double byte_count) noexcept {
  const Index batch = shape_.batch;
  const std::size_t rows_bytes = static_cast<std::size_t>(batch) * sizeof(std::int32_t);
  if (source == nullptr || byte_count < static_cast<double>(sizeof(Header) + 2 * rows_bytes))
    return Status::invalid_cache;
  Header saved;
  std::memcpy(&saved, source, sizeof saved);
  Header expected = *header();
  expected.has_key_mask = saved.has_key_mask;
  expected.saved_slots = saved.saved_slots;
  if (std::memcmp(&saved, &expected, sizeof saved) != 0 || saved.has_key_mask < 0 || saved.has_key_mask > 1) {
    return Status::invalid_cache;
  }
  // The rows decide how much follows: look at them before anything is taken over.
  std::int32_t longest = 0;
  for (Index row = 0; row < batch; ++row) {
    std::int32_t length = 0;
    std::int32_t first = 0;
    std::memcpy(&length, source + sizeof saved + static_cast<std::size_t>(row) * sizeof length, sizeof length);
    std::memcpy(&first, source + sizeof saved + rows_bytes + static_cast<std::size_t>(row) * sizeof first,
                sizeof first);
    const bool fits = shape_.rolling || length <= shape_.capacity;
    if (length < 0 || first < 0 || first > length || length - first > shape_.capacity || !fits) {
      return Status::invalid_cache;
    }
    longest = std::max(longest, length);
  }
  if (saved.saved_slots != std::min<Index>(longest, shape_.capacity)) return Status::invalid_cache;
  const double tokens = static_cast<double>(saved.saved_slots) * static_cast<double>(batch);
  const double element = shape_.type == CacheType::int8 ? sizeof(std::int8_t) : sizeof(float);
  const double scales = shape_.type == CacheType::int8 ? 2 * sizeof(float) : 0;
  const double per_head = static_cast<double>(shape_.head_dim + shape_.value_dim) * element + scales;
  const double expected_bytes = static_cast<double>(sizeof saved + 2 * rows_bytes) +
                                tokens * (1 + static_cast<double>(shape_.kv_heads) * per_head);
  if (byte_count != expected_bytes) return Status::invalid_cache;

  std::memcpy(lengths_, source + sizeof saved, rows_bytes);  // slots_in_use() counts on it
  header()->has_key_mask = saved.has_key_mask;
  source += sizeof saved;
  visit_saved_parts([&](void* part, std::size_t count) {
    std::memcpy(part, source, count);
    source += count;
  });
  return Status::ok;
}

}  // namespace lookback
