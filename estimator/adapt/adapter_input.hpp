// What peft's forward pass does with a layer's result and input before the first factor of an
// adapter.
#pragma once

#include "estimator/adapt/graph_edit.hpp"

namespace stowage {

struct AdapterInput {
  TensorId x;     ///< what the first factor reads
  TensorId held;  ///< the input in the adapters' format, a variable to the end; none: x as it came
};

/// The input of `base` in the format `type`, then dropped out.
[[nodiscard]] Result<AdapterInput> adapter_input(GraphEdit& edit, const LoraSettings& lora,
                                                 DataType type, const Operator& base);
[[nodiscard]] Result<TensorId> converted(GraphEdit& edit, std::string name, TensorId x,
                                         DataType type, const Operator& base);
[[nodiscard]] Attributes linear_attributes(std::int64_t features);
/// With the row's defaults for what is not said.
[[nodiscard]] Attributes completed(const OperatorRow& row, Attributes attributes);
/// To what an adapter is added: the layer's result, or a copy of it where the layer has 4 bits
/// (tuners/lora/bnb.py, Linear4bit.forward).
[[nodiscard]] Result<TensorId> result_to_adapt(GraphEdit& edit, DataType type,
                                               const Operator& base);

}  // namespace stowage
