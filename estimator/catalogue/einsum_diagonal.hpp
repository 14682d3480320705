// Diagonals of einsum's operands: a label that stands twice. In PyTorch a diagonal is a view, whose
// backward makes zeros of the operand's size and copies into them (diagonal_backward in
// FunctionsManual.cpp). Our executor's views have no strides of their own: with n zeros behind its
// n rows, a square is n rows of n + 1, whose first column the diagonal is.
#pragma once

#include <string>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Two axes of one length, which does not depend on the batch; first < second.
struct DiagonalAxes {
  std::size_t first = 0, second = 0;
};

// The diagonal is the last axis of the result, behind the others in order.
[[nodiscard]] TensorView diagonal_view(const TensorView& view, const DiagonalAxes& axes);
[[nodiscard]] TensorView diagonal_copy(OperatorLowering& lowering, const TensorView& view,
                                       const DiagonalAxes& axes, const std::string& suffix);

// `gradient` of the diagonal, in a tensor of `shape`.
[[nodiscard]] TensorView diagonal_view_backward(OperatorLowering& lowering,
                                                const TensorView& gradient, const Shape& shape,
                                                const DiagonalAxes& axes,
                                                const std::string& suffix);
[[nodiscard]] TensorView diagonal_copy_backward(OperatorLowering& lowering,
                                                const TensorView& gradient, const Shape& shape,
                                                const DiagonalAxes& axes,
                                                const std::string& suffix);

}  // namespace stowage
