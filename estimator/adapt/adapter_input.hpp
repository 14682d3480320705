// The inputs of an adapter, as peft's forward pass prepares them: the layer's input converted and
// dropped out, and the layer's result.
#pragma once

#include "estimator/adapt/graph_edit.hpp"

namespace stowage {

struct AdapterInput {
  TensorId x;  ///< what the first factor reads
  /// The input converted to the adapters' format, which a Python variable holds until forward
  /// returns. None: the input was not converted.
  TensorId held;
};

/// Converts the input of `base` to `type`, then applies dropout.
[[nodiscard]] Result<AdapterInput> adapter_input(GraphEdit& edit, const LoraSettings& lora,
                                                 DataType type, const Operator& base);
[[nodiscard]] Result<TensorId> convert_tensor(GraphEdit& edit, std::string name, TensorId x,
                                              DataType type, const Operator& base);
[[nodiscard]] Attributes linear_attributes(std::int64_t features);
/// `attributes` with the row's defaults for those that are missing.
[[nodiscard]] Attributes completed(const OperatorRow& row, Attributes attributes);
/// The tensor that an adapter's result is added to: the layer's result, or a copy of it for a 4-bit
/// layer (tuners/lora/bnb.py, Linear4bit.forward).
[[nodiscard]] Result<TensorId> result_to_adapt(GraphEdit& edit, DataType type,
                                               const Operator& base);

}  // namespace stowage
