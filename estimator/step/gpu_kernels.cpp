#include "estimator/step/gpu_kernels.hpp"

#include <fmt/format.h>

#include <vector>

#include "estimator/step/kernel_table.hpp"

namespace stowage {

namespace {

// Of booleans there is no product on either device.
bool is_product_of_integers(const KernelNode& node) {
  if (node.kernel != Kernel::matmul && node.kernel != Kernel::linear_forward) return false;
  if (node.reads.empty()) return false;
  const DataType type = node.reads.front().type;
  return !is_floating_point(type) && type != DataType::boolean;
}

bool says_none(const KernelNode& node) {
  for (const auto& [name, value] : node.attributes.entries()) {
    if (name != gpu_kernel_attribute) continue;
    const bool* exists = std::get_if<bool>(&value);
    return exists != nullptr && !*exists;
  }
  return false;
}

std::vector<DataType> types_of_views(const std::vector<TensorView>& views) {
  std::vector<DataType> types;
  types.reserve(views.size());
  for (const TensorView& view : views) types.push_back(view.type);
  return types;
}

}  // namespace

std::string why_no_gpu_kernel(const KernelNode& node, KernelSet kernels) {
  if (says_none(node)) return fmt::format("the step says that {} has none", kernel_name(node));
  if (kernels == KernelSet::pytorch && is_product_of_integers(node)) {
    return fmt::format("PyTorch's matrix products on CUDA take no {}",
                       to_string(node.reads.front().type));
  }
  if (!traits(kernels).executable) return {};
  const bool backend_runs = !argument_types(ArgumentType::floating, KernelDevice::cuda).empty();
  if (!backend_runs) return {};
  const auto reads = types_of_views(node.reads), writes = types_of_views(node.writes);
  const auto type = unsupported_type(node.kernel, {reads, writes}, KernelDevice::cuda);
  if (!type) return {};
  return fmt::format("on the GPU {} takes no {}", kernel_name(node), to_string(*type));
}

}  // namespace stowage
