// Product: linear layers and matmul as the products that a BLAS runs, on the host or on a device.
#pragma once

#include <vector>

#include "gpu_probe/kernels/rows/arguments.hpp"
#include "gpu_probe/kernels/rows/launch.hpp"

namespace stowage::kernels {

/// A batch of row-major matrices at equal distances.
struct Matrices {
  std::byte* data = nullptr;
  DataType type = DataType::float32;
  std::int64_t columns = 0;   ///< as stored, before a transposition; the distance of rows
  bool transposed = false;    ///< whether the product takes the transpose
  std::int64_t distance = 0;  ///< elements from one matrix to the next; 0: all are the same
};

/// c = alpha a b + beta c, for each matrix of the batch; a is [m, k] and b is [k, n] after their
/// transpositions. No two products of a batch have the same c.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  double alpha = 1, beta = 0;
  Matrices a, b, c;
};

/// Whether it is linear_forward, linear_backward_data, linear_backward_filter or matmul.
[[nodiscard]] bool is_product(Kernel kernel);

/// The products of a call, in the order in which they run. m, n and batch are at least 1; k may be
/// 0, and then c becomes beta c. The product of a linear layer with a bias has beta 1: c already
/// holds the bias. Throws KernelError where shapes or attributes do not fit. Precondition:
/// is_product(call.kernel).
[[nodiscard]] std::vector<Product> products_of(const KernelCall& call);

}  // namespace stowage::kernels
