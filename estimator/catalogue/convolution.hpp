// What the convolutions' rows and, for the bias, the linear row share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/catalogue/operator_row.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Padding per spatial axis as numbers, `same` resolved.
[[nodiscard]] std::vector<std::int64_t> resolved_padding(const Attributes& attributes);

/// The question for a WorkspaceSource, with the operator's stride, padding, dilation and groups.
[[nodiscard]] ConvolutionCall convolution_call(const OperatorLowering& lowering,
                                               ConvolutionCall::Direction direction,
                                               const TensorView& x, const TensorView& w,
                                               const TensorView& y);
/// 2 * elements of y * taps of a filter.
[[nodiscard]] Affine convolution_flops(const TensorView& w, const TensorView& y);

/// Sums `dy` over all axes but `axis` into the gradient of parameter 1, if there is one.
void emit_bias_gradient(OperatorLowering& lowering, const TensorView& dy, std::int64_t axis);

[[nodiscard]] AttributeSpec channels_attribute();
/// A [height, width] pair; `value` none: required.
[[nodiscard]] AttributeSpec window_attribute(std::string_view name, std::string_view doc,
                                             std::optional<std::int64_t> value, double minimum);
[[nodiscard]] AttributeSpec groups_attribute();
[[nodiscard]] AttributeSpec bias_attribute();

}  // namespace stowage
