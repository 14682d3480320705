// What the normalizations' rows share.
#pragma once

#include <optional>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Refuses what is not [batch, channels, ...] of floating-point values with constant channels.
[[nodiscard]] std::optional<InferenceError> want_channels(const TensorType& x);

/// The trailing axes that `axes` counts, constant and of floating-point values.
[[nodiscard]] tl::expected<Shape, InferenceError> normalized_axes(const Attributes& attributes,
                                                                  const TensorType& x);

/// `weight` and, unless the row has `bias` and it is false, `bias`; nothing unless `affine`.
void add_affine_parameters(Inference& inference, const Attributes& attributes, const Shape& shape,
                           DataType type);
/// The buffers `running_mean`, `running_var` and `num_batches_tracked`.
void add_running_statistics(Inference& inference, const Shape& channels, DataType type);

/// The gradients of weight and bias as a backward kernel writes them: all, or without those of
/// frozen ones, as PyTorch's kernels leave them out.
using MakeGradients = std::vector<TensorView> (*)(OperatorLowering& lowering);
[[nodiscard]] std::vector<TensorView> all_affine_gradients(OperatorLowering& lowering);
[[nodiscard]] std::vector<TensorView> wanted_affine_gradients(OperatorLowering& lowering);
/// Gives those of `gradients` away that are wanted, and drops the others.
void give_affine_gradients(OperatorLowering& lowering, const std::vector<TensorView>& gradients);

[[nodiscard]] AttributeSpec epsilon_attribute(double value = 1e-5);
[[nodiscard]] AttributeSpec momentum_attribute();
[[nodiscard]] AttributeSpec affine_attribute(bool value);
[[nodiscard]] AttributeSpec affine_bias_attribute();
[[nodiscard]] AttributeSpec running_statistics_attribute(bool value);
[[nodiscard]] AttributeSpec normalized_axes_attribute();

/// PyTorch's choice of cuDNN (_select_batch_norm_backend, ATen/native/Normalization.cpp): not
/// without weights, for matrices, or in bfloat16, and for float16 with float32 weights only.
[[nodiscard]] bool batch_norm_runs_on_cudnn(const OperatorLowering& lowering);

}  // namespace stowage
