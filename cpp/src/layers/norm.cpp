#include "lookback/norm.hpp"

#include <cmath>

#include "kernels/norm.hpp"

namespace lookback {

Status norm_forward(const NormCall& call) noexcept {
  if (call.width < 1 || call.batch < 1 || call.heads < 1 || call.length < 0) return Status::invalid_shape;
  if (!std::isfinite(call.epsilon) || call.epsilon < 0.0F) return Status::invalid_argument;
  if (call.length == 0) return Status::ok;
  if (call.input.data == nullptr || call.output.data == nullptr) return Status::null_pointer;
  const auto statistics =
      call.kind == NormKind::rms_norm ? kernels::rms_norm_statistics : kernels::layer_norm_statistics;
  for (Index batch = 0; batch < call.batch; ++batch) {
    for (Index row = 0; row < call.length; ++row) {
      for (Index head = 0; head < call.heads; ++head) {
        const float* input = call.input.row(batch, head, row);
        kernels::normalise_row(input, call.width, statistics(input, call.width, call.epsilon), call.weight, call.bias,
                               call.output.row(batch, head, row));
      }
    }
  }
  return Status::ok;
}

}  // namespace lookback
