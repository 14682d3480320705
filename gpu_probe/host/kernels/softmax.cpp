// Softmax and its logarithm along an axis. With `causal` (softmax alone), position (q, k) of the
// last two axes takes part for k <= q only (PyTorch's is_causal, aligned to the upper left corner),
// and the others are 0.
#include <algorithm>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// Lines along the axis: element j of line (outer, inner) is at (outer * length + j) * inner_size
/// + inner.
struct Lines {
  std::int64_t outer, length, inner;
  bool causal;
  std::int64_t queries;  // rows of a causal matrix

  [[nodiscard]] std::int64_t active(std::int64_t line) const {
    return causal ? std::min(length, line % queries + 1) : length;
  }
};

Lines lines_of(const KernelCall& call, const TensorArgument& x) {
  const std::size_t rank = x.shape.size();
  require(rank >= 1, "a scalar has no axis");
  const std::size_t axis = axis_of(call, "axis", rank, -1);
  Lines l{.outer = count(x.shape, 0, axis),
          .length = x.shape[axis],
          .inner = count(x.shape, axis + 1, rank),
          .causal = boolean(call, "causal", false),
          .queries = 1};
  if (l.causal) {
    require(rank >= 2 && axis == rank - 1, "a causal softmax of {} is along the last of two axes",
            shape_text(x.shape));
    l.queries = x.shape[rank - 2];
  }
  return l;
}

}  // namespace

void softmax_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  const Lines l = lines_of(call, call.reads[0]);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  for (std::int64_t outer = 0; outer < l.outer; ++outer) {
    const std::int64_t active = l.active(outer);
    for (std::int64_t inner = 0; inner < l.inner; ++inner) {
      const std::int64_t base = outer * l.length * l.inner + inner;
      float largest = x[base];
      for (std::int64_t j = 1; j < active; ++j) largest = std::max(largest, x[base + j * l.inner]);
      double sum = 0;
      for (std::int64_t j = 0; j < active; ++j) {
        sum += std::exp(static_cast<double>(x[base + j * l.inner]) - largest);
      }
      for (std::int64_t j = 0; j < l.length; ++j) {
        const std::int64_t at = base + j * l.inner;
        y[at] = j < active
                    ? static_cast<float>(std::exp(static_cast<double>(x[at]) - largest) / sum)
                    : 0;
      }
    }
  }
}

void softmax_backward(const KernelCall& call) {
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const Lines l = lines_of(call, call.reads[0]);
  const float *y = floats(call.reads[0]), *dy = floats(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  for (std::int64_t outer = 0; outer < l.outer; ++outer) {
    for (std::int64_t inner = 0; inner < l.inner; ++inner) {
      const std::int64_t base = outer * l.length * l.inner + inner;
      double sum = 0;
      for (std::int64_t j = 0; j < l.length; ++j) {
        const std::int64_t at = base + j * l.inner;
        sum += static_cast<double>(y[at]) * dy[at];
      }
      for (std::int64_t j = 0; j < l.length; ++j) {
        const std::int64_t at = base + j * l.inner;
        dx[at] = static_cast<float>(y[at] * (dy[at] - sum));
      }
    }
  }
}

void log_softmax_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  const Lines l = lines_of(call, call.reads[0]);
  const float* x = floats(call.reads[0]);
  float* y = mutable_floats(call.writes[0]);
  for (std::int64_t line = 0; line < l.outer * l.inner; ++line) {
    const std::int64_t base = line / l.inner * l.length * l.inner + line % l.inner;
    float largest = x[base];
    for (std::int64_t j = 1; j < l.length; ++j) largest = std::max(largest, x[base + j * l.inner]);
    double sum = 0;
    for (std::int64_t j = 0; j < l.length; ++j) {
      sum += std::exp(static_cast<double>(x[base + j * l.inner]) - largest);
    }
    const double log_sum = largest + std::log(sum);
    for (std::int64_t j = 0; j < l.length; ++j) {
      y[base + j * l.inner] = static_cast<float>(x[base + j * l.inner] - log_sum);
    }
  }
}

void log_softmax_backward(const KernelCall& call) {
  require_same_shape("dy", call.reads[1], call.reads[0]);
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const Lines l = lines_of(call, call.reads[0]);
  const float *y = floats(call.reads[0]), *dy = floats(call.reads[1]);
  float* dx = mutable_floats(call.writes[0]);
  for (std::int64_t line = 0; line < l.outer * l.inner; ++line) {
    const std::int64_t base = line / l.inner * l.length * l.inner + line % l.inner;
    double sum = 0;
    for (std::int64_t j = 0; j < l.length; ++j) sum += dy[base + j * l.inner];
    for (std::int64_t j = 0; j < l.length; ++j) {
      const std::int64_t at = base + j * l.inner;
      dx[at] = static_cast<float>(dy[at] - std::exp(static_cast<double>(y[at])) * sum);
    }
  }
}

}  // namespace stowage::host
