// Cross-entropy of classes, of logits or (nll_loss) of their log-probabilities, averaged over the
// targets that are not `ignore_index` (PyTorch's default -100); cross-entropy may smooth the
// targets. Backward multiplies by the attribute `scale`, the gradient of the loss itself.
#include <algorithm>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// logits [n, classes, area], target [n, area].
struct Classes {
  std::int64_t n, classes, area, ignored;
  double smoothing;  ///< the share of a target's weight that is spread over all classes
};

Classes classes_of(const KernelCall& call, const TensorArgument& logits,
                   const TensorArgument& target) {
  require(logits.shape.size() >= 2, "{} has no class axis", shape_text(logits.shape));
  Sizes expected = logits.shape;
  expected.erase(expected.begin() + 1);
  require_shape("the target", target, expected);
  return {logits.shape[0], logits.shape[1], count(logits.shape, 2, logits.shape.size()),
          integer(call, "ignore_index", -100), real(call, "label_smoothing", 0)};
}

/// `logits` begin at a position's first class.
double mean_over_classes(const float* logits, const Classes& c) {
  double sum = 0;
  for (std::int64_t k = 0; k < c.classes; ++k) sum += logits[k * c.area];
  return sum / static_cast<double>(c.classes);
}

std::int64_t checked_class(std::int64_t target, const Classes& c) {
  require(target >= 0 && target < c.classes, "target {} is not one of {} classes", target,
          c.classes);
  return target;
}

void require_scalar(const TensorArgument& loss) {
  require(count(loss.shape) == 1, "the loss is {}, not one number", shape_text(loss.shape));
}

}  // namespace

void cross_entropy_forward(const KernelCall& call) {
  const auto &logits = call.reads[0], &target = call.reads[1], &logsumexp = call.writes[1];
  const Classes c = classes_of(call, logits, target);
  require_scalar(call.writes[0]);
  require_same_shape("logsumexp", logsumexp, target);
  const float* x = floats(logits);
  const std::int64_t* t = integers(target);
  float* sums = mutable_floats(logsumexp);
  double loss = 0;
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < c.n * c.area; ++i) {
    const std::int64_t base = i / c.area * c.classes * c.area + i % c.area;
    float largest = x[base];
    for (std::int64_t k = 1; k < c.classes; ++k) largest = std::max(largest, x[base + k * c.area]);
    double sum = 0;
    for (std::int64_t k = 0; k < c.classes; ++k) {
      sum += std::exp(static_cast<double>(x[base + k * c.area]) - largest);
    }
    const double log_sum = largest + std::log(sum);
    sums[i] = static_cast<float>(log_sum);
    if (t[i] == c.ignored) continue;
    loss += log_sum - (1 - c.smoothing) * x[base + checked_class(t[i], c) * c.area];
    if (c.smoothing != 0) loss -= c.smoothing * mean_over_classes(x + base, c);
    ++counted;
  }
  *mutable_floats(call.writes[0]) = static_cast<float>(loss / static_cast<double>(counted));
}

void cross_entropy_backward(const KernelCall& call) {
  const auto &logits = call.reads[0], &target = call.reads[1], &dlogits = call.writes[0];
  const Classes c = classes_of(call, logits, target);
  require_same_shape("logsumexp", call.reads[2], target);
  require_same_shape("dlogits", dlogits, logits);
  const float *x = floats(logits), *sums = floats(call.reads[2]);
  const std::int64_t* t = integers(target);
  float* dx = mutable_floats(dlogits);
  const std::int64_t positions = c.n * c.area;
  const auto counted = positions - std::count(t, t + positions, c.ignored);
  const double scale = real(call, "scale", 1) / static_cast<double>(counted);
  const double spread = c.smoothing / static_cast<double>(c.classes);
  for (std::int64_t i = 0; i < positions; ++i) {
    const std::int64_t base = i / c.area * c.classes * c.area + i % c.area;
    for (std::int64_t k = 0; k < c.classes; ++k) {
      const std::int64_t at = base + k * c.area;
      const double share = std::exp(static_cast<double>(x[at]) - sums[i]);
      const double wanted = spread + (k == t[i] ? 1 - c.smoothing : 0);
      dx[at] = t[i] == c.ignored ? 0 : static_cast<float>(scale * (share - wanted));
    }
  }
}

void nll_loss_forward(const KernelCall& call) {
  const Classes c = classes_of(call, call.reads[0], call.reads[1]);
  require_scalar(call.writes[0]);
  const float* logp = floats(call.reads[0]);
  const std::int64_t* t = integers(call.reads[1]);
  double loss = 0;
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < c.n * c.area; ++i) {
    if (t[i] == c.ignored) continue;
    const std::int64_t base = i / c.area * c.classes * c.area + i % c.area;
    loss -= logp[base + checked_class(t[i], c) * c.area];
    ++counted;
  }
  *mutable_floats(call.writes[0]) = static_cast<float>(loss / static_cast<double>(counted));
}

void nll_loss_backward(const KernelCall& call) {
  const auto& dlogp = call.writes[0];
  const Classes c = classes_of(call, call.reads[0], call.reads[1]);
  require_same_shape("dlogp", dlogp, call.reads[0]);
  const std::int64_t* t = integers(call.reads[1]);
  float* dx = mutable_floats(dlogp);
  const std::int64_t positions = c.n * c.area;
  const auto counted = positions - std::count(t, t + positions, c.ignored);
  const double scale = real(call, "scale", 1) / static_cast<double>(counted);
  std::fill_n(dx, count(dlogp.shape), 0.0F);
  for (std::int64_t i = 0; i < positions; ++i) {
    if (t[i] == c.ignored) continue;
    const std::int64_t base = i / c.area * c.classes * c.area + i % c.area;
    dx[base + checked_class(t[i], c) * c.area] = static_cast<float>(-scale);
  }
}

}  // namespace stowage::host
