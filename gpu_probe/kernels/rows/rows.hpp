// Our own kernels. Each has a row: a function that checks a call and makes its launches.
//
// Tensors are row-major and contiguous. Arguments may not overlap, except where a signature names
// one on both sides or says that a result may lie over an argument (dx over dy); then both are the
// same elements, and a body reads what it needs of an element before it writes it. The number of
// arguments and their types are checked against the signature before a row is called. The row
// checks shapes and attributes itself, and throws KernelError where they do not fit.
//
// A result does not depend on addresses, nor on how indices are distributed over threads: the same
// inputs give the same bits.
#pragma once

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/kernels/rows/launch.hpp"

namespace stowage::kernels {

/// The type in which float32 is computed (bodies/floats.hpp): double on the host, float on a
/// device.
enum class Arithmetic {
  host,  ///< the arguments can be read while the launches are made
  device
};

// One row for each KERNEL of step/kernel_list.hpp. Without it the program does not link.
#define STOWAGE_DECLARATION(name, ...) \
  [[nodiscard]] Launches name(const KernelCall& call, Arithmetic arithmetic);
#define STOWAGE_NO_DECLARATION(...)
STOWAGE_KERNELS(STOWAGE_DECLARATION, STOWAGE_NO_DECLARATION, STOWAGE_NO_DECLARATION)
#undef STOWAGE_DECLARATION
#undef STOWAGE_NO_DECLARATION

/// Whether the kernel is one of our own.
[[nodiscard]] bool has_row(Kernel kernel);

/// The launches of a call, in the order in which they run. Errors: "relu_forward: y is [2] where
/// [3] is needed". Precondition: has_row(call.kernel).
[[nodiscard]] Result<Launches> launches_of(const KernelCall& call, Arithmetic arithmetic);

}  // namespace stowage::kernels
