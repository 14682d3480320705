// A recurrent layer on a device: products for a BLAS, with launches of our own bodies between them.
//
// It computes in float32 (in float64 where x is float64), as the host does, and keeps the same
// reserve. So forward may run on one device and backward on the other.
#pragma once

#include <variant>
#include <vector>

#include "gpu_probe/kernels/rows/launch.hpp"
#include "gpu_probe/kernels/rows/products.hpp"

namespace stowage::kernels {

/// Whether it is rnn_forward or rnn_backward.
[[nodiscard]] bool is_recurrent(Kernel kernel);

/// The products and launches of a call, in the order in which they run. Only addresses are read,
/// not the data. Throws KernelError where shapes or attributes do not fit, or the scratch is
/// missing or too small. Precondition: is_recurrent(call.kernel).
[[nodiscard]] std::vector<std::variant<Product, Launch>> rnn_work(const KernelCall& call);

}  // namespace stowage::kernels
