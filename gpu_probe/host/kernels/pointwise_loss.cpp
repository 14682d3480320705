// Losses that compare a tensor with a target of its shape, averaged over all elements (kl_div also
// over the batch alone). Backward multiplies by the attribute `scale`, the gradient of the loss
// itself.
#include <algorithm>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// loss = sum of term(x, target) / divisor.
template <typename Term>
void average(const KernelCall& call, double divisor, Term term) {
  const auto &x = call.reads[0], &target = call.reads[1], &loss = call.writes[0];
  require_same_shape("the target", target, x);
  require(count(loss.shape) == 1, "the loss is {}, not one number", shape_text(loss.shape));
  const float *a = floats(x), *b = floats(target);
  double sum = 0;
  for (std::int64_t i = 0; i < count(x.shape); ++i) sum += term(double{a[i]}, double{b[i]});
  *mutable_floats(loss) = static_cast<float>(sum / divisor);
}

/// dx = scale / divisor * slope(x, target).
template <typename Slope>
void average_gradient(const KernelCall& call, double divisor, Slope slope) {
  const auto &x = call.reads[0], &target = call.reads[1], &dx = call.writes[0];
  require_same_shape("the target", target, x);
  require_same_shape("dx", dx, x);
  const double scale = real(call, "scale", 1) / divisor;
  const float *a = floats(x), *b = floats(target);
  float* out = mutable_floats(dx);
  for (std::int64_t i = 0; i < count(x.shape); ++i) {
    out[i] = static_cast<float>(scale * slope(double{a[i]}, double{b[i]}));
  }
}

double elements(const KernelCall& call) { return static_cast<double>(count(call.reads[0].shape)); }

/// What kl_div divides by.
double reduced_over(const KernelCall& call) {
  const double all = elements(call);
  const std::string reduction = text(call, "reduction", "mean");
  if (reduction == "mean") return all;
  require(reduction == "batchmean", "attribute 'reduction' is '{}'", reduction);
  require(!call.reads[0].shape.empty(), "a scalar has no batch axis");
  return static_cast<double>(call.reads[0].shape[0]);
}

/// PyTorch's bound on the logarithms of a probability of 0.
double bounded_log(double p) { return std::max(std::log(p), -100.0); }

}  // namespace

void mse_forward(const KernelCall& call) {
  average(call, elements(call), [](double x, double t) { return (x - t) * (x - t); });
}

void mse_backward(const KernelCall& call) {
  average_gradient(call, elements(call), [](double x, double t) { return 2 * (x - t); });
}

void l1_forward(const KernelCall& call) {
  average(call, elements(call), [](double x, double t) { return std::abs(x - t); });
}

void l1_backward(const KernelCall& call) {
  average_gradient(call, elements(call), [](double x, double t) {
    if (x == t) return 0.0;
    return std::copysign(1, x - t) + 0 * (x - t);  // NaN stays NaN
  });
}

void bce_forward(const KernelCall& call) {
  if (boolean(call, "logits", false)) {
    return average(call, elements(call), [](double x, double t) {
      return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x)));
    });
  }
  average(call, elements(call),
          [](double x, double t) { return -t * bounded_log(x) - (1 - t) * bounded_log(1 - x); });
}

void bce_backward(const KernelCall& call) {
  if (boolean(call, "logits", false)) {
    return average_gradient(call, elements(call),
                            [](double x, double t) { return 1 / (1 + std::exp(-x)) - t; });
  }
  average_gradient(call, elements(call), [](double x, double t) {
    return (x - t) / std::max((1 - x) * x, 1e-12);  // PyTorch's bound
  });
}

void kl_div_forward(const KernelCall& call) {
  average(call, reduced_over(call),
          [](double logp, double t) { return t > 0 ? t * (std::log(t) - logp) : -t * logp; });
}

void kl_div_backward(const KernelCall& call) {
  average_gradient(call, reduced_over(call), [](double, double t) { return -t; });
}

}  // namespace stowage::host
