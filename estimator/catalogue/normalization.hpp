// Functions that the normalizations' rows share.
#pragma once

#include <optional>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// An error if `x` is not [batch, channels, ...] of floating-point values with constant channels.
[[nodiscard]] std::optional<InferenceError> want_channels(const TensorType& x);

/// The shape of the last `axes` axes. Error: they are not constant, or the values not
/// floating-point.
[[nodiscard]] tl::expected<Shape, InferenceError> normalized_axes(const Attributes& attributes,
                                                                  const TensorType& x);

/// With the attribute `affine`: adds the parameters `weight` and `bias`, the latter unless the
/// attribute `bias` is false.
void add_affine_parameters(Inference& inference, const Attributes& attributes, const Shape& shape,
                           DataType type);
/// Adds the buffers `running_mean`, `running_var` and `num_batches_tracked`.
void add_running_statistics(Inference& inference, const Shape& channels, DataType type);

/// Makes the gradients of weight and bias that a backward kernel writes: all of them, or only those
/// of trained parameters, as PyTorch's kernels do.
using MakeGradients = std::vector<TensorView> (*)(OperatorLowering& lowering);
[[nodiscard]] std::vector<TensorView> all_affine_gradients(OperatorLowering& lowering);
[[nodiscard]] std::vector<TensorView> wanted_affine_gradients(OperatorLowering& lowering);
/// Passes the gradients of trained parameters on, and drops the others.
void give_affine_gradients(OperatorLowering& lowering, const std::vector<TensorView>& gradients);

[[nodiscard]] AttributeSpec epsilon_attribute(double value = 1e-5);
[[nodiscard]] AttributeSpec momentum_attribute();
[[nodiscard]] AttributeSpec affine_attribute(bool value);
[[nodiscard]] AttributeSpec affine_bias_attribute();
[[nodiscard]] AttributeSpec running_statistics_attribute(bool value);
[[nodiscard]] AttributeSpec normalized_axes_attribute();

/// Whether PyTorch uses cuDNN (_select_batch_norm_backend, ATen/native/Normalization.cpp): not
/// without weights, not for matrices and not in bfloat16; for float16 only with float32 weights.
[[nodiscard]] bool batch_norm_runs_on_cudnn(const OperatorLowering& lowering);

}  // namespace stowage
