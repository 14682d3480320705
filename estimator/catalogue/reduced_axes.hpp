// Axes that an operator reduces: its attributes `axes` and `keep`.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// By axis of x, whether it is reduced: those written, or all.
[[nodiscard]] tl::expected<std::vector<bool>, InferenceError> reduced_axes(
    const Attributes& attributes, const Shape& x);
/// x without the reduced axes, or, kept, with them as ones.
[[nodiscard]] Shape reduced_shape(const Shape& x, const std::vector<bool>& reduced, bool keep);

/// Of a floating-point input: a result of its type, `flops` for each element of the input.
[[nodiscard]] tl::expected<Inference, InferenceError> infer_over_axes(
    const Attributes& attributes, std::span<const TensorType> inputs, std::int64_t flops);

/// As kernels take them: from 0, in rising order.
[[nodiscard]] std::vector<std::int64_t> reduced_axis_list(const OperatorLowering& lowering);
/// `view`, of the output's shape, with the reduced axes back, as ones.
[[nodiscard]] TensorView with_reduced_axes(const OperatorLowering& lowering, TensorView view);

[[nodiscard]] std::vector<AttributeSpec> reduced_axes_attributes();

}  // namespace stowage
