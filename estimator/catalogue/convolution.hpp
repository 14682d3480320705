// Functions that the convolutions' rows share; the pooling and linear rows use some of them.
//
// A rule takes the number of spatial axes from the length of `kernel`.
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

/// The number of zeros before and after the input, for each spatial axis.
struct Padding {
  std::vector<std::int64_t> before, after;
};
/// The attribute `padding` if it has one number per axis, the same for both sides; else null.
[[nodiscard]] const std::vector<std::int64_t>* padding_of_axes(const Attributes& attributes);
/// The attribute `padding` as numbers. `same`: half of the dilated kernel's overhang on each side,
/// an odd one goes after; `valid`: none.
[[nodiscard]] Padding resolved_padding(const Attributes& attributes);
/// The padding that both sides of each axis have in common, which the convolution itself adds. More
/// on one side is added by a padded copy of the input, as PyTorch does for `same`.
[[nodiscard]] std::vector<std::int64_t> symmetric_padding(const Padding& padding);

// Lowering (convolution.cpp, convolution_call.cpp).
/// The filter: a parameter, or the second input if it is computed.
[[nodiscard]] TensorView convolution_filter(const OperatorLowering& lowering);
/// The query for a WorkspaceSource (pytorch/convolution.hpp), with the operator's stride, padding,
/// dilation and groups.
[[nodiscard]] ConvolutionCall convolution_call(const OperatorLowering& lowering,
                                               ConvolutionCall::Direction direction,
                                               const TensorView& x, const TensorView& w,
                                               const TensorView& y);

/// Sums `dy` over all axes but `axis` into `db`.
KernelNode& emit_bias_sum(OperatorLowering& lowering, const TensorView& dy, const TensorView& db,
                          std::int64_t axis);
/// Sums `dy` over all axes but `axis` into the gradient of parameter number `place`. Null: that
/// parameter needs no gradient.
KernelNode* emit_bias_gradient(OperatorLowering& lowering, const TensorView& dy, std::int64_t axis,
                               int place = 1);

// Attributes (convolution_shapes.cpp).
[[nodiscard]] AttributeSpec channels_attribute();
/// An attribute with one integer per spatial axis. Without `value` it is required.
[[nodiscard]] AttributeSpec window_attribute(std::string_view name, std::string_view doc,
                                             std::optional<std::int64_t> value, double minimum,
                                             int spatial);
[[nodiscard]] AttributeSpec groups_attribute();
[[nodiscard]] AttributeSpec bias_attribute();

}  // namespace stowage
