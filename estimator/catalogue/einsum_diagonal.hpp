// Diagonals of einsum's operands, for a label that occurs twice in one operand. In PyTorch a
// diagonal is a view, whose backward pass fills a tensor of the operand's size with zeros and
// copies into it (diagonal_backward in FunctionsManual.cpp). Our executor's views have no strides.
// So a square of n rows gets n zeros appended and is seen as n rows of n + 1 elements, whose first
// column is the diagonal.
#pragma once

#include <string>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Two axes of one length, which does not depend on the batch; first < second.
struct DiagonalAxes {
  std::size_t first = 0, second = 0;
};

// The diagonal, as the last axis of the result after the other axes.
[[nodiscard]] TensorView diagonal_view(const TensorView& view, const DiagonalAxes& axes);
[[nodiscard]] TensorView diagonal_copy(OperatorLowering& lowering, const TensorView& view,
                                       const DiagonalAxes& axes, const std::string& suffix);

// The operand's gradient, of shape `shape`, from the diagonal's `gradient`.
[[nodiscard]] TensorView diagonal_view_backward(OperatorLowering& lowering,
                                                const TensorView& gradient, const Shape& shape,
                                                const DiagonalAxes& axes,
                                                const std::string& suffix);
[[nodiscard]] TensorView diagonal_copy_backward(OperatorLowering& lowering,
                                                const TensorView& gradient, const Shape& shape,
                                                const DiagonalAxes& axes,
                                                const std::string& suffix);

}  // namespace stowage
