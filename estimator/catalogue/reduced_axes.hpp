// The axes that an operator reduces: its attributes `axes` and `keep`.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// By axis of x, whether it is reduced. Without `axes` all are.
[[nodiscard]] tl::expected<std::vector<bool>, InferenceError> reduced_axes(
    const Attributes& attributes, const Shape& x);
/// The shape of the result: x without the reduced axes, or with length 1 for them if `keep`.
[[nodiscard]] Shape reduced_shape(const Shape& x, const std::vector<bool>& reduced, bool keep);

/// Shape rule for a floating-point input: a result of its type, and `flops` operations per element
/// of the input.
[[nodiscard]] tl::expected<Inference, InferenceError> infer_over_axes(
    const Attributes& attributes, std::span<const TensorType> inputs, std::int64_t flops);

/// The reduced axes for a kernel: counted from 0, ascending.
[[nodiscard]] std::vector<std::int64_t> reduced_axis_list(const OperatorLowering& lowering);
/// `view`, which has the output's shape, with the reduced axes inserted as axes of length 1.
[[nodiscard]] TensorView with_reduced_axes(const OperatorLowering& lowering, TensorView view);

[[nodiscard]] std::vector<AttributeSpec> reduced_axes_attributes();

}  // namespace stowage
