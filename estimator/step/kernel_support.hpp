// Which kernels exist, on which device and in which data types.
//
// Held against the host kernels by a test: a call in a type that is not listed is refused, a call
// in one that is runs.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "estimator/base/data_type.hpp"
#include "estimator/step/kernel.hpp"

namespace stowage {

enum class KernelDevice { host, cuda };  ///< the executor's two machines
inline constexpr std::array kernel_devices{KernelDevice::host, KernelDevice::cuda};
[[nodiscard]] std::string_view to_string(KernelDevice device);  ///< "host", "cuda"

/// The types that the kernel's floating-point arguments may have or, where it has none, its first
/// argument. Indices are int64, masks boolean or uint8 whatever the type. Empty: there is no such
/// kernel on the device.
[[nodiscard]] std::span<const DataType> kernel_types(Kernel kernel, KernelDevice device);

/// All of DataType's.
[[nodiscard]] bool takes_any_type(Kernel kernel, KernelDevice device);

/// Why a kernel is on no device at all: "PyTorch's own"; "" where it is, or could be.
[[nodiscard]] std::string_view why_nowhere(Kernel kernel);

}  // namespace stowage
