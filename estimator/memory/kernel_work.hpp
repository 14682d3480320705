// KernelWork: what a node computes, as far as its time depends on it.
//
// A convolution is the matrix product that its kernels make of it (implicit GEMM; Chetlur et al.,
// "cuDNN: Efficient Primitives for Deep Learning", 2014):
//
//             rows           columns              depth
//   forward   n p q          k / groups           c / groups * r s
//   data      n h w          c / groups           k / groups * r s
//   filter    k / groups     c / groups * r s     n p q
//
// with x [n, c, h, w], w [k, c / groups, r, s], y [n, k, p, q], and as many products as groups.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "estimator/base/id.hpp"
#include "estimator/base/kernel_kind.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// In which format a kernel computes.
enum class MathFormat : std::uint8_t {
  fp64,
  fp32,
  tf32,  ///< products of fp32 operands that the step's settings let run on tensor cores: by
         ///< PyTorch's defaults convolutions and cuDNN's recurrent layers, not matrix products
  fp16,
  bf16,
};
inline constexpr std::array all_math_formats{MathFormat::fp64, MathFormat::fp32, MathFormat::tf32,
                                             MathFormat::fp16, MathFormat::bf16};
[[nodiscard]] std::string_view to_string(MathFormat format);

struct KernelWork {
  KernelKind kind = KernelKind::pointwise;
  MathFormat format = MathFormat::fp32;  ///< of kinds that are no products: fp32 or fp64
  double flops = 0;
  double bytes = 0;  ///< arguments read plus written
  /// Of the operands that a kernel on tensor cores has to reorder first, and of the result that it
  /// reorders then: a convolution's whose channels do not lie innermost. Else 0.
  double reordered_bytes = 0;
  /// The matrix product; rows 0: none, or not known.
  double rows = 0, columns = 0, depth = 0;
  double products = 1;  ///< side by side
};

/// Of any node, also of a step that was not lowered here: what does not hang together is described
/// without a matrix product.
[[nodiscard]] KernelWork kernel_work(const SizedStep& step, NodeId node);
/// Of a node that the step does not have, on its storages.
[[nodiscard]] KernelWork kernel_work(const SizedStep& step, const KernelNode& node);

}  // namespace stowage
