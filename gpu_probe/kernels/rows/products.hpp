// Linear layers and matmul as the products that a BLAS runs, on the host or on a device.
#pragma once

#include <vector>

#include "gpu_probe/kernels/rows/arguments.hpp"
#include "gpu_probe/kernels/rows/launch.hpp"

namespace stowage::kernels {

/// Row-major matrices, one behind the other.
struct Matrices {
  std::byte* data = nullptr;
  DataType type = DataType::float32;
  std::int64_t columns = 0;   ///< as stored, before a transposition; rows lie this far apart
  bool transposed = false;    ///< the product takes the transpose
  std::int64_t distance = 0;  ///< elements from one to the next; 0: the same for all
};

/// c = alpha a b + beta c, `batch` times; a is [m, k] and b [k, n] after their transpositions.
/// No two of a batch have the same c.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  double alpha = 1, beta = 0;
  Matrices a, b, c;
};

/// linear_forward, linear_backward_data, linear_backward_filter or matmul.
[[nodiscard]] bool is_product(Kernel kernel);

/// In this order, none empty (m, n and batch are at least 1; k may be 0: c becomes beta c). A
/// linear layer's bias is in c already: its product has beta 1. KernelError where shapes or
/// attributes do not suit. Precondition: is_product(call.kernel).
[[nodiscard]] std::vector<Product> products_of(const KernelCall& call);

}  // namespace stowage::kernels
