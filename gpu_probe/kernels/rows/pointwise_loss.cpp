// Losses that compare a tensor with a target of the same shape, averaged over all elements (kl_div:
// or over the batch only). Backward multiplies by the attribute `scale`, which is the gradient of
// the loss.
#include "gpu_probe/kernels/bodies/pointwise_loss.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"

namespace stowage::kernels {
namespace {

template <class Comparison>
Launches average(const KernelCall& call, Arithmetic arithmetic, double divisor) {
  const auto &x = call.reads[0], &target = call.reads[1], &loss = call.writes[0];
  require_same_shape("the target", target, x);
  require(count(loss.shape) == 1, "the loss is {}, not one number", shape_text(loss.shape));
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_group(body::PointwiseLoss<T, Real, Comparison>{elements<T>(x), elements<T>(target),
                                                               any_floats(loss), count(x.shape),
                                                               static_cast<Real>(divisor)},
                      1, body::largest_group);
  })};
}

template <class Comparison>
Launches average_gradient(const KernelCall& call, Arithmetic arithmetic, double divisor) {
  const auto &x = call.reads[0], &target = call.reads[1], &dx = call.writes[0];
  require_same_shape("the target", target, x);
  require_same_shape("dx", dx, x);
  const double scale = real(call, "scale", 1) / divisor;
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::PointwiseGradient<T, Real, Comparison>{elements<T>(x), elements<T>(target),
                                                     elements<T>(dx), static_cast<Real>(scale)},
        count(x.shape));
  })};
}

double all_elements(const KernelCall& call) {
  return static_cast<double>(count(call.reads[0].shape));
}

/// The divisor of kl_div.
double reduced_over(const KernelCall& call) {
  const std::string reduction = text(call, "reduction", "mean");
  if (reduction == "mean") return all_elements(call);
  require(reduction == "batchmean", "attribute 'reduction' is '{}'", reduction);
  require(!call.reads[0].shape.empty(), "a scalar has no batch axis");
  return static_cast<double>(call.reads[0].shape[0]);
}

}  // namespace

Launches mse_forward(const KernelCall& call, Arithmetic arithmetic) {
  return average<body::SquaredError>(call, arithmetic, all_elements(call));
}
Launches mse_backward(const KernelCall& call, Arithmetic arithmetic) {
  return average_gradient<body::SquaredError>(call, arithmetic, all_elements(call));
}

Launches l1_forward(const KernelCall& call, Arithmetic arithmetic) {
  return average<body::AbsoluteError>(call, arithmetic, all_elements(call));
}
Launches l1_backward(const KernelCall& call, Arithmetic arithmetic) {
  return average_gradient<body::AbsoluteError>(call, arithmetic, all_elements(call));
}

Launches bce_forward(const KernelCall& call, Arithmetic arithmetic) {
  const double elements = all_elements(call);
  return boolean(call, "logits", false)
             ? average<body::LogitEntropy>(call, arithmetic, elements)
             : average<body::ProbabilityEntropy>(call, arithmetic, elements);
}
Launches bce_backward(const KernelCall& call, Arithmetic arithmetic) {
  const double elements = all_elements(call);
  return boolean(call, "logits", false)
             ? average_gradient<body::LogitEntropy>(call, arithmetic, elements)
             : average_gradient<body::ProbabilityEntropy>(call, arithmetic, elements);
}

Launches kl_div_forward(const KernelCall& call, Arithmetic arithmetic) {
  return average<body::Divergence>(call, arithmetic, reduced_over(call));
}
Launches kl_div_backward(const KernelCall& call, Arithmetic arithmetic) {
  return average_gradient<body::Divergence>(call, arithmetic, reduced_over(call));
}

}  // namespace stowage::kernels
