#include "estimator/step/kernel_support.hpp"

#include <array>

namespace stowage {
namespace {

constexpr std::array single{DataType::float32};
constexpr std::array counts{DataType::int64};
constexpr std::array numbers{DataType::float32, DataType::int64};
constexpr std::array constants{DataType::float32, DataType::int64, DataType::boolean};
constexpr std::array all{DataType::float32,  DataType::float64, DataType::float16,
                         DataType::bfloat16, DataType::int64,   DataType::int32,
                         DataType::uint8,    DataType::boolean};

std::span<const DataType> host_types(Kernel kernel) {
  switch (kernel) {
    case Kernel::concatenate:  // these move bytes, or read any
    case Kernel::slice:
    case Kernel::permute:
    case Kernel::copy:
    case Kernel::cast:
      return all;
    case Kernel::fill:
    case Kernel::expand:
      return constants;
    case Kernel::add:
    case Kernel::subtract:
    case Kernel::multiply:
      return numbers;
    case Kernel::iota:
    case Kernel::relative_buckets:
      return counts;
    default:
      return single;
  }
}

}  // namespace

std::string_view to_string(KernelDevice device) {
  return device == KernelDevice::host ? "host" : "cuda";
}

std::string_view why_nowhere(Kernel kernel) {
  switch (kernel) {
    case Kernel::attention_forward:
    case Kernel::attention_backward:
    case Kernel::foreach_update:
      return "PyTorch's own";
    case Kernel::custom_forward:
    case Kernel::custom_backward:
      return "what it computes is not stated";
    case Kernel::foreign:
      return "not a kernel of this program";
    default:
      return "";
  }
}

std::span<const DataType> kernel_types(Kernel kernel, KernelDevice device) {
  // The cuda backend runs no kernels yet.
  if (device == KernelDevice::cuda || !why_nowhere(kernel).empty()) return {};
  return host_types(kernel);
}

bool takes_any_type(Kernel kernel, KernelDevice device) {
  return kernel_types(kernel, device).size() == all.size();
}

}  // namespace stowage
