// A tensor as rows that are normalised one by one.
#pragma once

#include "gpu_probe/host/kernels/arguments.hpp"

namespace stowage::host {

/// x as [rows, width], the trailing axes that are normalised together being the width.
struct Rows {
  std::int64_t rows, width;
  Sizes row_shape, width_shape;
};

/// Attribute `axes`: how many trailing axes, 1 without it.
[[nodiscard]] Rows rows_of(const KernelCall& call, const TensorArgument& x);
/// A statistic of each row: shaped as the leading axes, with or without trailing ones.
void require_row_statistic(std::string_view what, const TensorArgument& argument, const Rows& r);

}  // namespace stowage::host
