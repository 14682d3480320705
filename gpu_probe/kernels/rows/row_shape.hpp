// A tensor as rows that are normalised one by one, and one as planes.
#pragma once

#include "gpu_probe/kernels/bodies/planes.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// x as [rows, width], the trailing axes that are normalised together being the width.
struct RowShape {
  std::int64_t rows, width;
  Sizes row_shape, width_shape;
};

/// Attribute `axes`: how many trailing axes, 1 without it.
[[nodiscard]] RowShape row_shape(const KernelCall& call, const TensorArgument& x);
/// A statistic of each row: shaped as the leading axes, with or without trailing ones.
void require_row_statistic(std::string_view what, const TensorArgument& argument,
                           const RowShape& r);

/// x as [images, channels, area]. KernelError where it has no channel axis.
[[nodiscard]] body::Planes planes_of(const TensorArgument& x);

}  // namespace stowage::kernels
