#include "gpu_probe/run/tolerance.hpp"

#include <algorithm>

namespace stowage {
namespace {

constexpr double roundoff_of_float64 = 0x1p-53, roundoff_of_float32 = 0x1p-24,
                 roundoff_of_tf32 = 0x1p-11;

double roundoff(DataType type) {
  switch (type) {
    case DataType::float64:
      return roundoff_of_float64;
    case DataType::float16:
      return 0x1p-11;
    case DataType::bfloat16:
      return 0x1p-8;
    default:
      return roundoff_of_float32;
  }
}

/// Whether PyTorch runs the node by cuDNN, whose setting of TF32 the step has.
bool may_run_in_tf32(const KernelNode& node) {
  return node.convolution >= 0 || node.kernel == Kernel::rnn_forward ||
         node.kernel == Kernel::rnn_backward;
}

}  // namespace

double roundoff_of(const StepGraph& graph, const KernelNode& node, DataType result) {
  const bool is_tf32 = graph.settings.convolutions.tf32 && may_run_in_tf32(node);
  return is_tf32 && result == DataType::float32 ? roundoff_of_tf32 : roundoff(result);
}

double coarsest_roundoff(const StepGraph& graph) {
  double coarsest = roundoff_of_float64;
  for (const KernelNode& node : graph.nodes) {
    for (const TensorView& view : node.writes) {
      if (!is_floating_point(view.type)) continue;
      coarsest = std::max(coarsest, roundoff_of(graph, node, view.type));
    }
  }
  return coarsest;
}

double gpu_tolerance(const StepGraph& graph) {
  const double u = coarsest_roundoff(graph);
  if (u <= roundoff_of_float64) return 1e-9;
  return u <= roundoff_of_float32 ? 1e-3 : 32 * u;
}

double rounding_share(const StepGraph& graph) {
  return std::max(1e-5, 4 * coarsest_roundoff(graph));
}

}  // namespace stowage
