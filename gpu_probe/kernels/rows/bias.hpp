// The bias of what a library computes, for devices: cuBLAS's and cuDNN's calls leave it to us.
#pragma once

#include "gpu_probe/kernels/rows/arguments.hpp"
#include "gpu_probe/kernels/rows/launch.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage::kernels {

/// Before linear_forward's product: every row of y becomes the bias. Preconditions: y's last axis
/// has the bias' size.
[[nodiscard]] Launch rows_of_bias(const TensorArgument& y, const TensorArgument& bias,
                                  Arithmetic arithmetic);
/// After a convolution: y's axis 1 has the bias' size.
[[nodiscard]] Launch bias_of_channels(const TensorArgument& y, const TensorArgument& bias,
                                      Arithmetic arithmetic);

}  // namespace stowage::kernels
