// The table of kernels: each one's arguments, and on which device it runs in which types.
//
// The host's kernels are bound to it when they are built, and held against it by tests.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "estimator/base/data_type.hpp"
#include "estimator/step/kernel.hpp"
#include "estimator/step/kernel_signature.hpp"

namespace stowage {

enum class KernelDevice { host, cuda };  ///< the executor's two machines
inline constexpr std::array kernel_devices{KernelDevice::host, KernelDevice::cuda};
[[nodiscard]] std::string_view to_string(KernelDevice device);  ///< "host", "cuda"

struct KernelRow {
  Kernel kernel = Kernel::foreign;
  std::string_view name;
  ArgumentType type = ArgumentType::floating;  ///< of arguments without a type of their own
  KernelSignature signature;
  std::string_view no_device_reason;  ///< "PyTorch's own"; "" if it runs on a device, or could
  std::string_view notes;             ///< attributes, shapes, what it computes
};

/// In the order of Kernel, without `foreign`.
[[nodiscard]] std::span<const KernelRow> kernel_table();

/// The types that an argument of this ArgumentType may have on a device, or (none) in a step.
/// Precondition: not `own`. Empty: no kernel is on the device.
[[nodiscard]] std::span<const DataType> argument_types(ArgumentType type,
                                                       std::optional<KernelDevice> device);

/// The types that the kernel's arguments without a type of their own may have. Empty: there is no
/// such kernel on the device.
[[nodiscard]] std::span<const DataType> kernel_types(Kernel kernel, KernelDevice device);

/// Why a kernel is on no device at all; "" where it is, or could be.
[[nodiscard]] std::string_view no_device_reason(Kernel kernel);

/// Whether the kernel is right, bit for bit, where its result number `written` lies in the place of
/// its argument number `read`, which is of the same shape and type. Of names on both sides of a
/// signature, which are one storage, it is false; and of a foreign kernel.
[[nodiscard]] bool may_write_over(Kernel kernel, std::size_t written, std::size_t read);

/// A name stands on both sides of the kernel's signature: it changes an argument.
[[nodiscard]] bool updates_arguments(Kernel kernel);

/// The types of a call's arguments.
struct CallTypes {
  std::span<const DataType> reads, writes;
};

/// What a call's arguments lack of the signature, on a device, or (none) on any:
/// "reads 1 tensor where it takes x, w, [b]", "reads int64 as 'x' where it takes float32". None:
/// they fit, or the kernel is foreign. Shapes and attributes are not looked at.
[[nodiscard]] std::optional<std::string> call_problem(Kernel kernel, const CallTypes& call,
                                                      std::optional<KernelDevice> device);

/// The first type of the call that the kernel does not take on the device where it could take
/// another; none: all fit, as far as their number does.
[[nodiscard]] std::optional<DataType> unsupported_type(Kernel kernel, const CallTypes& call,
                                                       KernelDevice device);

}  // namespace stowage
