// Launches that add a bias on a device: the calls of cuBLAS and cuDNN do not.
#pragma once

#include "gpu_probe/kernels/rows/arguments.hpp"
#include "gpu_probe/kernels/rows/launch.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage::kernels {

/// To be launched before the product of linear_forward: sets every row of y to the bias.
/// Precondition: y's last axis has the bias's size.
[[nodiscard]] Launch rows_of_bias(const TensorArgument& y, const TensorArgument& bias,
                                  Arithmetic arithmetic);
/// To be launched after a convolution: adds the bias along axis 1 of y, which has the bias's size.
[[nodiscard]] Launch bias_of_channels(const TensorArgument& y, const TensorArgument& bias,
                                      Arithmetic arithmetic);

}  // namespace stowage::kernels
