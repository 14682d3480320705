// Which kernel calls have no kernel on a GPU, so that only the CPU can run them.
#pragma once

#include <string>

#include "estimator/base/kernel_set.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// An attribute of a node (false) with which whoever recorded a step says that a kernel, most
/// often a foreign one, has none.
inline constexpr const char* gpu_kernel_attribute = "gpu_kernel";

/// Why no GPU runs this call: "PyTorch's matrix products on CUDA take no int64". "": one does, or
/// nothing is known against it. It may depend on the call's formats. The facts:
///   - what the node's own attribute says;
///   - PyTorch multiplies matrices of integers on the CPU alone: addmm_cuda dispatches over
///     floating-point and complex types (aten/src/ATen/native/cuda/Blas.cpp), addmm_impl_cpu_ over
///     integers too (aten/src/ATen/native/LinearAlgebra.cpp);
///   - of the program's own kernels, the types that the CUDA backend takes (kernel_table.hpp).
///     Nothing follows from a backend that runs no kernels at all.
[[nodiscard]] std::string why_no_gpu_kernel(const KernelNode& node, KernelSet kernels);

}  // namespace stowage
