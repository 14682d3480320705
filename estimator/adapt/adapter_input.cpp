#include "estimator/adapt/adapter_input.hpp"

#include <fmt/format.h>

#include "estimator/catalogue/fine_tuning_rows.hpp"

namespace stowage {

Attributes linear_attributes(std::int64_t features) {
  Attributes attributes;
  attributes.set("features", features);
  attributes.set("bias", false);
  return attributes;
}

Attributes completed(const OperatorRow& row, Attributes attributes) {
  for (const AttributeSpec& spec : row.attributes) {
    if (spec.default_value && !attributes.has(spec.name)) {
      attributes.set(spec.name, *spec.default_value);
    }
  }
  return attributes;
}

Result<TensorId> result_to_adapt(GraphEdit& edit, DataType type, const Operator& base) {
  const TensorId result = base.outputs.front();
  if (base.row != &linear_4bit_row()) return result;
  const auto copy =
      edit.add(fmt::format("{}.lora_copy", base.name), copied_row(), {}, {result}, type, base);
  if (!copy) return tl::unexpected(copy.error());
  return copy->output;
}

Result<TensorId> convert_tensor(GraphEdit& edit, std::string name, TensorId x, DataType type,
                                const Operator& base) {
  if (edit.model().tensor(x).type.type == type) return x;
  Attributes format;
  format.set("dtype", std::string(to_string(type)));
  return edit.add(std::move(name), *find_operator("cast"), std::move(format), {x}, type, base)
      .map([](const GraphEdit::InsertedOperator& made) { return made.output; });
}

Result<AdapterInput> adapter_input(GraphEdit& edit, const LoraSettings& lora, DataType type,
                                   const Operator& base) {
  AdapterInput input{.x = base.inputs.front(), .held = {}};
  const auto cast =
      convert_tensor(edit, fmt::format("{}.lora_input", base.name), input.x, type, base);
  if (!cast) return tl::unexpected(cast.error());
  if (*cast != input.x) input.x = input.held = *cast;
  if (lora.dropout <= 0) return input;
  Attributes dropout;
  dropout.set("p", lora.dropout);
  dropout.set("in_place", false);
  const auto dropped =
      edit.add(fmt::format("{}.lora_dropout", base.name), *find_operator("dropout"),
               std::move(dropout), {input.x}, type, base);
  if (!dropped) return tl::unexpected(dropped.error());
  input.x = dropped->output;
  return input;
}

}  // namespace stowage
