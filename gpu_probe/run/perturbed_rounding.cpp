#include "gpu_probe/run/perturbed_rounding.hpp"

#include <cmath>

#include "gpu_probe/kernels/bodies/dropout.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"
#include "gpu_probe/run/tolerance.hpp"

namespace stowage {
namespace {

// A float32 sum rounds at each addition and is off by a few roundoffs. A 16-bit result, and one of
// TF32 factors, is rounded once.
constexpr double roundoffs_of_a_sum = 4, roundoffs_of_a_result = 1;
constexpr double coarse = 0x1p-12;

bool adds_up(const KernelNode& node) {
  switch (node.kernel) {
    case Kernel::linear_forward:
    case Kernel::linear_backward_data:
    case Kernel::linear_backward_filter:
    case Kernel::matmul:
    case Kernel::batch_norm_forward:
    case Kernel::batch_norm_inference:
    case Kernel::batch_norm_backward:
    case Kernel::layer_norm_forward:
    case Kernel::layer_norm_backward:
    case Kernel::group_norm_forward:
    case Kernel::group_norm_backward:
    case Kernel::rms_norm_forward:
    case Kernel::rms_norm_backward:
    case Kernel::attention_forward:
    case Kernel::attention_backward:
    case Kernel::rnn_forward:
    case Kernel::rnn_backward:
      return true;
    default:
      return node.convolution >= 0;
  }
}

/// A random number in [-1, 1) that `number` decides.
double random_within_one(std::uint64_t number) {
  return static_cast<double>(body::MaskDraw::mixed(number) >> 11) * 0x1p-52 - 1;
}

void perturb(const TensorArgument& tensor, double roundoffs, std::uint64_t seed) {
  const body::Floats values = kernels::any_floats(tensor);
  body::Index count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  double squares = 0;
  for (body::Index i = 0; i < count; ++i) {
    const double value = values.at<double>(i);
    squares += value * value;
  }
  const double most = roundoffs * std::sqrt(squares / static_cast<double>(count));
  for (body::Index i = 0; i < count; ++i) {
    values.set(
        i, values.at<double>(i) + most * random_within_one(seed + static_cast<std::uint64_t>(i)));
  }
}

}  // namespace

void perturb_rounding(const StepGraph& graph, const KernelNode& node,
                      std::span<const TensorArgument> written, std::uint64_t seed) {
  if (!adds_up(node)) return;
  for (const TensorArgument& tensor : written) {
    if (!is_floating_point(tensor.type)) continue;
    const double u = roundoff_of(graph, node, tensor.type);
    seed = seed * 31 + 1;
    perturb(tensor, u * (u < coarse ? roundoffs_of_a_sum : roundoffs_of_a_result), seed << 20);
  }
}

}  // namespace stowage
