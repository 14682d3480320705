// RowShape: a tensor as rows, each of which is normalised. planes_of: a tensor as planes.
#pragma once

#include "gpu_probe/kernels/bodies/planes.hpp"
#include "gpu_probe/kernels/rows/arguments.hpp"

namespace stowage::kernels {

/// x as [rows, width]; the width is the last axes, which are normalised together.
struct RowShape {
  std::int64_t rows, width;
  Sizes row_shape, width_shape;
};

/// The attribute `axes` says how many of the last axes; without it 1.
[[nodiscard]] RowShape row_shape(const KernelCall& call, const TensorArgument& x);
/// Throws KernelError unless the argument has one number for each row: the shape of the leading
/// axes, with or without last axes of size 1.
void require_row_statistic(std::string_view what, const TensorArgument& argument,
                           const RowShape& r);

/// x as [images, channels, area]. Throws KernelError where x has no channel axis.
[[nodiscard]] body::Planes planes_of(const TensorArgument& x);

}  // namespace stowage::kernels
