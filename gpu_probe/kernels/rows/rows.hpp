// The kernels of our own: for each a row, which checks a call and makes the launches that it is.
//
// Row-major, contiguous. Arguments may not overlap except where a signature names one on both
// sides, or says that a result may lie over an argument (dx over dy): then both are the same
// elements, and a body reads whatever it needs of one before it writes it. The number of a call's
// arguments and their types are checked against the signature before a row is called; it checks
// shapes and attributes itself and throws KernelError where they do not suit.
//
// The kernels' results do not depend on the address, nor on how indices are dealt out to threads:
// the same inputs give the same bits.
#pragma once

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/kernels/rows/launch.hpp"

namespace stowage::kernels {

/// What float32 is computed in (bodies/floats.hpp): double, or float.
enum class Arithmetic {
  host,  ///< and the arguments can be read while the launches are made
  device
};

// One a kernel of our own. A kernel without a row fails when the program is linked.
#define STOWAGE_DECLARATION(name, ...) \
  [[nodiscard]] Launches name(const KernelCall& call, Arithmetic arithmetic);
#define STOWAGE_NO_DECLARATION(...)
STOWAGE_KERNELS(STOWAGE_DECLARATION, STOWAGE_NO_DECLARATION, STOWAGE_NO_DECLARATION)
#undef STOWAGE_DECLARATION
#undef STOWAGE_NO_DECLARATION

/// Whether the kernel is one of our own.
[[nodiscard]] bool has_row(Kernel kernel);

/// What the call launches, in this order. Errors: "relu_forward: y is [2] where [3] is needed".
/// Precondition: has_row(call.kernel).
[[nodiscard]] Result<Launches> launches_of(const KernelCall& call, Arithmetic arithmetic);

}  // namespace stowage::kernels
