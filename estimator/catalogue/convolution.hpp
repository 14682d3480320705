// What the convolutions' rows share with each other, and parts of it with the pooling and linear
// rows.
//
// A rule finds how many spatial axes its operator has from the length of `kernel`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "estimator/model/operator_row.hpp"
#include "estimator/pytorch/convolution.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

// Shape rules (convolution_shapes.cpp).
[[nodiscard]] tl::expected<Inference, InferenceError> infer_convolution(
    const Attributes& attributes, std::span<const TensorType> inputs);
/// Output size: (in - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1
/// (torch.nn.ConvTranspose2d).
[[nodiscard]] tl::expected<Inference, InferenceError> infer_transposed_convolution(
    const Attributes& attributes, std::span<const TensorType> inputs);

/// Zeros on the two sides of each spatial axis.
struct Padding {
  std::vector<std::int64_t> before, after;
};
/// The attribute where it is written as one number an axis, the same on both sides; null: it is
/// not.
[[nodiscard]] const std::vector<std::int64_t>* padding_of_axes(const Attributes& attributes);
/// As numbers: `same` is half of what the dilated kernel overhangs, the odd one after; `valid`
/// none.
[[nodiscard]] Padding resolved_padding(const Attributes& attributes);
/// What both sides of each axis have: the padding of the convolution itself. What one side has
/// beyond it, the lowering adds in a copy, as PyTorch does for `same`.
[[nodiscard]] std::vector<std::int64_t> symmetric_padding(const Padding& padding);

// Lowering (convolution.cpp, convolution_call.cpp).
/// The filter: a parameter, or, computed, the second input.
[[nodiscard]] TensorView convolution_filter(const OperatorLowering& lowering);
/// The question for a WorkspaceSource (pytorch/convolution.hpp), with the operator's stride,
/// padding, dilation and groups.
[[nodiscard]] ConvolutionCall convolution_call(const OperatorLowering& lowering,
                                               ConvolutionCall::Direction direction,
                                               const TensorView& x, const TensorView& w,
                                               const TensorView& y);

/// Sums `dy` over all axes but `axis` into `db`.
KernelNode& emit_bias_sum(OperatorLowering& lowering, const TensorView& dy, const TensorView& db,
                          std::int64_t axis);
/// Sums `dy` over all axes but `axis` into the gradient of parameter number `place`, if there is
/// one; null: not.
KernelNode* emit_bias_gradient(OperatorLowering& lowering, const TensorView& dy, std::int64_t axis,
                               int place = 1);

// Attributes (convolution_shapes.cpp).
[[nodiscard]] AttributeSpec channels_attribute();
/// One integer a spatial axis; `value` none: required.
[[nodiscard]] AttributeSpec window_attribute(std::string_view name, std::string_view doc,
                                             std::optional<std::int64_t> value, double minimum,
                                             int spatial);
[[nodiscard]] AttributeSpec groups_attribute();
[[nodiscard]] AttributeSpec bias_attribute();

}  // namespace stowage
