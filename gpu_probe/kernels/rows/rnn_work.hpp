// A recurrent layer on a device, as products for a BLAS and launches of bodies of our own between
// them.
//
// It computes in float32 (float64 of float64), as the host does, and keeps the same reserve, so
// that forward may run on one side and backward on the other.
#pragma once

#include <variant>
#include <vector>

#include "gpu_probe/kernels/rows/launch.hpp"
#include "gpu_probe/kernels/rows/products.hpp"

namespace stowage::kernels {

/// rnn_forward or rnn_backward.
[[nodiscard]] bool is_recurrent(Kernel kernel);

/// In this order, one after the other. Addresses alone are looked at, not what they point to.
/// KernelError where shapes or attributes do not suit, or the scratch is missing or too small.
/// Precondition: is_recurrent(call.kernel).
[[nodiscard]] std::vector<std::variant<Product, Launch>> rnn_work(const KernelCall& call);

}  // namespace stowage::kernels
