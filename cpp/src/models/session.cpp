#include <algorithm>
#include <cstring>

#include "lookback/decoder.hpp"
#include "models/session_layout.hpp"

namespace lookback {
namespace {

SessionHead& head_of(void* memory) noexcept { return *static_cast<SessionHead*>(memory); }

template <typename T>
T* at(void* memory, double offset) noexcept {
  return reinterpret_cast<T*>(static_cast<char*>(memory) + static_cast<std::size_t>(offset));
}

}  // namespace

double DecoderSession::bytes(const DecoderConfig& config, const DecoderSessionShape& shape) noexcept {
  return SessionLayout(config, shape).bytes;
}

Status DecoderSession::create(const DecoderConfig& config, const DecoderSessionShape& shape, void* memory) noexcept {
  if (const Status status = validate_decoder(config); status != Status::ok) return status;
  if (shape.batch < 1 || shape.capacity < 1 || shape.chunk < 1) return Status::invalid_shape;
  if (memory == nullptr) return Status::null_pointer;
  const SessionLayout layout(config, shape);
  const SessionHead head{shape, config, layout};
  std::memcpy(memory, &head, sizeof head);
  for (Index layer = 0; layer < config.layers; ++layer) {
    const Status status = KvCache::create(cache_shape(config, shape, is_windowed(config, layer)),
                                          at<void>(memory, layout.cache(config, layer)));
    if (status != Status::ok) return status;
  }
  std::fill_n(at<std::int32_t>(memory, layout.padding), shape.batch, 0);
  return Status::ok;
}

const DecoderSessionShape& DecoderSession::shape() const noexcept { return head_of(memory_).shape; }

std::int32_t DecoderSession::vocab_size() const noexcept { return head_of(memory_).config.vocab_size; }

KvCache DecoderSession::cache(Index layer) const noexcept {
  return KvCache(at<void>(memory_, head_of(memory_).layout.cache(head_of(memory_).config, layer)));
}

std::int32_t* DecoderSession::padding() const noexcept {
  return at<std::int32_t>(memory_, head_of(memory_).layout.padding);
}

std::int32_t* DecoderSession::step_tokens() const noexcept {
  return at<std::int32_t>(memory_, head_of(memory_).layout.step_tokens);
}

float* DecoderSession::step_logits() const noexcept { return at<float>(memory_, head_of(memory_).layout.step_logits); }

Status DecoderSession::truncate(Index length) noexcept {
  if (length < 0) return Status::invalid_range;
  const Index layers = head_of(memory_).config.layers;
  for (Index layer = 0; layer < layers; ++layer) {
    const KvCache stored = cache(layer);
    const std::int32_t* first = stored.first_positions();
    if (*std::max_element(first, first + shape().batch) > length) return Status::evicted;
  }
  for (Index layer = 0; layer < layers; ++layer) static_cast<void>(cache(layer).truncate(length));  // was checked
  std::int32_t* padded = padding();
  for (Index row = 0; row < shape().batch; ++row) {
    padded[row] = static_cast<std::int32_t>(std::min<Index>(padded[row], length));
  }
  return Status::ok;
}

void DecoderSession::reset() noexcept {
  for (Index layer = 0; layer < head_of(memory_).config.layers; ++layer) cache(layer).reset();
  std::fill_n(padding(), shape().batch, 0);
}

}  // namespace lookback
