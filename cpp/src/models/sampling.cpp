#include "lookback/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/exponential.hpp"

namespace lookback {
namespace {

using kernels::Exponential;
using kernels::exponential_coefficients;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr double alignment = 64;

struct RowState {
  std::uint64_t seed;
  std::uint64_t drawn;
  float entropy;
};

/// A token and its logit, less the largest one and divided by the temperature.
struct Entry {
  float distance;
  std::int32_t id;
};

/// For a heap whose top is the most probable.
bool is_less_probable(const Entry& a, const Entry& b) noexcept {
  return a.distance < b.distance || (a.distance == b.distance && a.id > b.id);
}

/// Byte offsets in the sampler's memory.
struct Layout {
  double rows, seen, candidate_ids, candidate_probabilities, distances, weights, entries, bytes;

  explicit Layout(const SamplerOptions& options) noexcept {
    const double batch = options.batch;
    const double vocabulary = options.vocab_size;
    take(sizeof(SamplerOptions));
    rows = take(batch * sizeof(RowState));
    seen = take(batch * vocabulary);
    candidate_ids = take(batch * options.candidates * sizeof(std::int32_t));
    candidate_probabilities = take(batch * options.candidates * sizeof(float));
    distances = take((vocabulary + simd::lanes) * sizeof(float));  // whole batches
    weights = take((vocabulary + simd::lanes) * sizeof(float));
    entries = take(vocabulary * sizeof(Entry));
    bytes = next_;
  }

private:
  double take(double byte_count) noexcept {
    const double start = next_;
    next_ += std::ceil(byte_count / alignment) * alignment;
    return start;
  }
  double next_ = 0;
};

template <typename T>
T* at(void* memory, double offset) noexcept {
  return reinterpret_cast<T*>(static_cast<char*>(memory) + static_cast<std::size_t>(offset));
}

/// The finaliser of splitmix64 (Steele, Lea and Flood 2014): whole numbers only, the same everywhere.
std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// Uniform in [0, 1), by a counter.
double uniform(std::uint64_t seed, std::uint64_t number) noexcept {
  const std::uint64_t bits = mix(mix(seed + 0x9e3779b97f4a7c15U) + (number + 1) * 0x9e3779b97f4a7c15U);
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

/// Tokens by falling probability, as far as they are asked for.
class Ranking {
public:
  Ranking(Entry* entries, const float* distances, Index count) noexcept : entries_(entries), count_(count) {
    for (Index id = 0; id < count; ++id) entries[id] = {distances[id], static_cast<std::int32_t>(id)};
    std::make_heap(entries, entries + count, is_less_probable);
  }

  /// The id of the n-th, n counting from 0 without a gap.
  std::int32_t operator[](Index n) noexcept {
    for (; ranked_ <= n; ++ranked_) std::pop_heap(entries_, entries_ + count_ - ranked_, is_less_probable);
    return entries_[count_ - 1 - n].id;
  }

private:
  Entry* entries_;
  Index count_;
  Index ranked_ = 0;
};

/// One draw of one row.
class Draw {
public:
  Draw(void* memory, const SamplerOptions& options, const Layout& layout, Index row) noexcept
      : options_(options),
        row_(at<RowState>(memory, layout.rows)[row]),
        seen_(at<std::uint8_t>(memory, layout.seen) + row * options.vocab_size),
        candidate_ids_(at<std::int32_t>(memory, layout.candidate_ids) + row * options.candidates),
        candidate_probabilities_(at<float>(memory, layout.candidate_probabilities) + row * options.candidates),
        distances_(at<float>(memory, layout.distances)),
        weights_(at<float>(memory, layout.weights)),
        entries_(at<Entry>(memory, layout.entries)) {}

  std::int32_t operator()(const float* logits) noexcept {
    std::int32_t id = penalise(logits);
    if (id < 0) return id;
    const bool greedy = options_.temperature == 0.0F;
    if (!greedy || options_.candidates > 0) exponentiate(distances_[id]);
    if (options_.candidates > 0 || (!greedy && cuts_by_rank())) {
      Ranking ranking(entries_, distances_, options_.vocab_size);
      if (options_.candidates > 0) report(ranking);
      if (!greedy) id = cuts_by_rank() ? pick_ranked(ranking) : pick();
    } else if (!greedy) {
      id = pick();
    }
    seen_[id] = 1;
    ++row_.drawn;
    return id;
  }

private:
  [[nodiscard]] bool cuts_by_rank() const noexcept {
    return (options_.top_k > 0 && options_.top_k < options_.vocab_size) || options_.top_p < 1.0F;
  }

  /// distances = logits after the penalty. The id of the largest, −1 if there is none.
  [[gnu::noinline]] std::int32_t penalise(const float* logits) noexcept {
    const float penalty = options_.repetition_penalty;
    std::int32_t best = -1;
    float largest = minus_infinity;
    for (std::int32_t id = 0; id < options_.vocab_size; ++id) {
      float logit = logits[id];
      if (penalty != 1.0F && seen_[id] != 0) logit = logit > 0.0F ? logit / penalty : logit * penalty;
      if (!(logit > minus_infinity)) logit = minus_infinity;  // NaN, too
      distances_[id] = logit;
      if (logit > largest) {
        largest = logit;
        best = id;
      }
    }
    return best;
  }

  /// weights = e^distances, distances being (logit − largest) / temperature.
  [[gnu::noinline]] void exponentiate(float largest) noexcept {
    const Index count = options_.vocab_size;
    const float temperature = options_.temperature == 0.0F ? 1.0F : options_.temperature;
    for (Index id = 0; id < count; ++id) {
      distances_[id] = distances_[id] == largest ? 0.0F : (distances_[id] - largest) / temperature;
    }
    std::fill_n(distances_ + count, simd::lanes, minus_infinity);
    const Exponential exponential(exponential_coefficients());
    for (Index id = 0; id < count; id += simd::lanes) {
      simd::store(weights_ + id, exponential(simd::load(distances_ + id)));
    }
    total_ = 0;
    for (Index id = 0; id < count; ++id) total_ += weight(id);
  }

  [[nodiscard]] double weight(Index id) const noexcept { return static_cast<double>(weights_[id]); }

  [[gnu::noinline]] void report(Ranking& ranking) noexcept {
    double sum = 0;
    for (Index id = 0; id < options_.vocab_size; ++id) {
      if (weights_[id] > 0.0F) sum += weight(id) * static_cast<double>(distances_[id]);
    }
    row_.entropy = static_cast<float>(std::max(std::log(total_) - sum / total_, 0.0));
    for (Index n = 0; n < options_.candidates; ++n) {
      const std::int32_t id = n < options_.vocab_size ? ranking[n] : -1;
      candidate_ids_[n] = id;
      candidate_probabilities_[n] = id < 0 ? 0.0F : static_cast<float>(weight(id) / total_);
    }
  }

  /// Of those that min_p leaves, in the order of their ids.
  [[gnu::noinline]] std::int32_t pick() const noexcept {
    double kept = 0;
    for (Index id = 0; id < options_.vocab_size; ++id) kept += weights_[id] < options_.min_p ? 0 : weight(id);
    const double goal = uniform(row_.seed, row_.drawn) * kept;
    double reached = 0;
    std::int32_t last = 0;
    for (std::int32_t id = 0; id < options_.vocab_size; ++id) {
      if (weights_[id] < options_.min_p || weights_[id] == 0.0F) continue;
      last = id;
      reached += weight(id);
      if (reached > goal) break;
    }
    return last;
  }

  /// Of the first of the ranking: top-k, top-p and min-p each leave so many of them.
  [[gnu::noinline]] std::int32_t pick_ranked(Ranking& ranking) const noexcept {
    Index count = options_.top_k > 0 ? std::min(options_.top_k, options_.vocab_size) : options_.vocab_size;
    double mass = total_;
    if (options_.top_k > 0) {
      mass = 0;
      for (Index n = 0; n < count; ++n) mass += weight(ranking[n]);
    }
    const double enough = options_.top_p < 1.0F ? mass * static_cast<double>(options_.top_p) : INFINITY;
    double kept = 0;
    Index left = 0;
    while (left < count && (left == 0 || kept < enough)) {
      const double next = weight(ranking[left]);
      if (next < static_cast<double>(options_.min_p) || next == 0.0) break;
      kept += next;
      ++left;
    }
    const double goal = uniform(row_.seed, row_.drawn) * kept;
    double reached = 0;
    Index n = 0;
    for (; n + 1 < left; ++n) {
      reached += weight(ranking[n]);
      if (reached > goal) break;
    }
    return ranking[n];
  }

  const SamplerOptions& options_;
  RowState& row_;
  std::uint8_t* seen_;
  std::int32_t* candidate_ids_;
  float* candidate_probabilities_;
  float* distances_;
  float* weights_;
  Entry* entries_;
  double total_ = 0;
};

bool is_valid(const SamplerOptions& options) noexcept {
  return std::isfinite(options.temperature) && options.temperature >= 0.0F &&
         std::isfinite(options.repetition_penalty) && options.repetition_penalty > 0.0F && options.top_k >= 0 &&
         options.top_p > 0.0F && options.top_p <= 1.0F && options.min_p >= 0.0F && options.min_p <= 1.0F &&
         options.candidates >= 0;
}

}  // namespace

double Sampler::bytes(const SamplerOptions& options) noexcept { return Layout(options).bytes; }

Status Sampler::create(const SamplerOptions& options, void* memory) noexcept {
  if (options.batch < 1 || options.vocab_size < 1) return Status::invalid_shape;
  if (!is_valid(options)) return Status::invalid_argument;
  if (memory == nullptr) return Status::null_pointer;
  std::memset(memory, 0, static_cast<std::size_t>(bytes(options)));
  std::memcpy(memory, &options, sizeof options);
  return Status::ok;
}

void Sampler::restart(Index row, std::uint64_t seed) noexcept {
  const Layout layout(options());
  at<RowState>(memory_, layout.rows)[row] = {seed, 0, 0.0F};
  std::memset(at<std::uint8_t>(memory_, layout.seen) + row * options().vocab_size, 0,
              static_cast<std::size_t>(options().vocab_size));
}

Status Sampler::observe(Index row, const std::int32_t* tokens, Index count) noexcept {
  if (row < 0 || row >= options().batch || count < 0) return Status::invalid_range;
  if (count > 0 && tokens == nullptr) return Status::null_pointer;
  for (Index n = 0; n < count; ++n) {
    if (tokens[n] < 0 || tokens[n] >= options().vocab_size) return Status::token_out_of_range;
  }
  std::uint8_t* seen = at<std::uint8_t>(memory_, Layout(options()).seen) + row * options().vocab_size;
  for (Index n = 0; n < count; ++n) seen[tokens[n]] = 1;
  return Status::ok;
}

std::int32_t Sampler::sample(Index row, const float* logits) noexcept {
  return Draw(memory_, options(), Layout(options()), row)(logits);
}

const std::int32_t* Sampler::candidate_ids(Index row) const noexcept {
  return at<std::int32_t>(memory_, Layout(options()).candidate_ids) + row * options().candidates;
}

const float* Sampler::candidate_probabilities(Index row) const noexcept {
  return at<float>(memory_, Layout(options()).candidate_probabilities) + row * options().candidates;
}

float Sampler::entropy(Index row) const noexcept { return at<RowState>(memory_, Layout(options()).rows)[row].entropy; }

Status decoder_sample(DecoderSession& session, Sampler& sampler) noexcept {
  const SamplerOptions& options = sampler.options();
  const Index vocabulary = options.vocab_size;
  if (options.batch != session.shape().batch || vocabulary != session.vocab_size()) return Status::invalid_shape;
  for (Index row = 0; row < options.batch; ++row) {
    session.step_tokens()[row] = sampler.sample(row, session.step_logits() + row * vocabulary);
  }
  return Status::ok;
}

Status decoder_step(const Decoder& decoder, DecoderSession& session, Sampler& sampler) noexcept {
  if (sampler.options().batch != session.shape().batch || sampler.options().vocab_size != session.vocab_size()) {
    return Status::invalid_shape;
  }
  DecoderCall call;
  call.tokens = session.step_tokens();
  call.length = 1;
  const Status status = decoder_forward(decoder, session, call);
  return status == Status::ok ? decoder_sample(session, sampler) : status;
}

}  // namespace lookback
