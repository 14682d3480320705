// tril and triu: matrices with zeros on one side of a diagonal. Nothing is saved.
#include <fmt/format.h>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_triangle(const Attributes&,
                                                       std::span<const TensorType> inputs) {
  if (inputs[0].shape.size() < 2) {
    return refuse(
        fmt::format("wants matrices, but its input has shape {}", to_string(inputs[0].shape)), {},
        0);
  }
  Inference result;
  result.outputs = {inputs[0]};
  return result;
}

Attributes triangle_side(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("upper", lowering.op().row->name == "triu");
  return attributes;
}

void forward_triangle(OperatorLowering& lowering) {
  lowering.emit(Kernel::triangle, "forward", {lowering.input()}, {lowering.new_output()},
                {.attributes = triangle_side(lowering)});
}

void backward_triangle(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::triangle, "backward", {lowering.output_gradient()}, {dx},
                {.attributes = triangle_side(lowering)});
  lowering.give_input_gradient(0, dx);
}

OperatorRow triangle_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .attributes = {{.name = "diagonal",
                          .type = AttributeType::integer,
                          .doc = "the last one kept; 0: the main one, positive: to its right",
                          .default_value = std::int64_t{0}}},
          .infer = infer_triangle,
          .lowering = {.stowage = {forward_triangle, backward_triangle}}};
}

}  // namespace

OperatorRow rows::tril() { return triangle_row("tril", "matrices with zeros above a diagonal"); }
OperatorRow rows::triu() { return triangle_row("triu", "matrices with zeros below a diagonal"); }

}  // namespace stowage
