// Precision: in which number formats a step runs.
//
//   fp32, fp64, fp16, bf16   parameters, activations, gradients and optimizer state alike
//                            (PyTorch: model.half() and the like)
//   amp-fp16, amp-bf16       fp32 parameters; operators run in the lower or in the fp32 format by
//                            their class (PyTorch: torch.autocast around forward and loss)
//   mixed-fp16, mixed-bf16   parameters and activations in 16 bits, fp32 master copies of the
//                            parameters kept by the optimizer (Micikevicius et al., "Mixed
//                            Precision Training", 2018): under Adam 16 bytes a parameter, 18 where
//                            gradients are kept in fp32 as well
//                            (OptimizerSettings::master_weights)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "estimator/base/data_type.hpp"

namespace stowage {

enum class Precision { fp32, fp64, fp16, bf16, amp_fp16, amp_bf16, mixed_fp16, mixed_bf16 };

[[nodiscard]] std::string_view to_string(Precision precision);  ///< "amp-bf16"
[[nodiscard]] std::optional<Precision> parse_precision(std::string_view text);
[[nodiscard]] std::span<const std::string_view> precision_names();  ///< in the enum's order

/// The format of parameters and of floating-point inputs.
[[nodiscard]] DataType float_type(Precision precision);
/// The lower format of autocast; nullopt: no autocast.
[[nodiscard]] std::optional<DataType> autocast_type(Precision precision);
/// The optimizer keeps fp32 copies of the parameters.
[[nodiscard]] bool has_master_weights(Precision precision);

/// What autocast does to an operator's floating-point inputs (ATen/autocast_mode.h). Without
/// autocast no class does anything.
enum class AutocastClass {
  as_is,    ///< nothing: it runs in the formats of its inputs, promoted where they differ
  lower,    ///< inputs and parameters to the 16-bit format: convolutions, products, attention
  float32,  ///< 16-bit inputs to fp32: normalizations, softmax, losses, powers, sums
};
[[nodiscard]] std::string_view to_string(AutocastClass autocast);

/// The format in which autocast hands a floating-point input of `type` to an operator of the class.
[[nodiscard]] DataType autocast_input(AutocastClass autocast, DataType lower, DataType type);

/// The format of a result of two operands as PyTorch promotes them: the wider one, float32 for
/// float16 with bfloat16, a floating one before an integer one.
[[nodiscard]] DataType promoted(DataType a, DataType b);

/// In which a kernel keeps statistics and sums over values of `type` (ATen's acc_type on CUDA):
/// float64 for float64, else float32.
[[nodiscard]] DataType statistics_type(DataType type);

}  // namespace stowage
