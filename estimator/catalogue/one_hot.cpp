// one_hot: indices as vectors of integers, without a gradient.
#include <fmt/format.h>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_one_hot(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  if (inputs[0].type != DataType::int64) {
    return refuse(fmt::format("wants int64 indices, but they are {}", to_string(inputs[0].type)),
                  {}, 0, "give the input `dtype: int64`, or `cast` it");
  }
  Shape y = inputs[0].shape;
  y.push_back(attributes.integer("classes"));
  Inference result;
  result.outputs = {{y, DataType::int64}};
  return result;
}

void forward_one_hot(OperatorLowering& lowering) {
  lowering.emit(Kernel::one_hot, "forward", {lowering.input()}, {lowering.new_output()});
}

}  // namespace

OperatorRow rows::one_hot() {
  return {.name = "one_hot",
          .doc = "int64 vectors with a 1 at each index",
          .attributes = {{.name = "classes",
                          .type = AttributeType::integer,
                          .doc = "their length",
                          .minimum = 1}},
          .infer = infer_one_hot,
          .lowering = {.stowage = {forward_one_hot, nullptr}}};
}

}  // namespace stowage
