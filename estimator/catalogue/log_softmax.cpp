// log_softmax: like softmax, it saves its result.
#include <fmt/format.h>

#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t flops = 5;  // an element

tl::expected<Inference, InferenceError> infer_log_softmax(const Attributes& attributes,
                                                          std::span<const TensorType> inputs) {
  const Shape& x = inputs[0].shape;
  if (!resolve_axis(attributes.integer("axis"), x.size())) {
    return refuse(fmt::format("axis {} is outside its input's shape {}", attributes.integer("axis"),
                              to_string(x)),
                  "axis", 0);
  }
  return infer_elementwise(inputs, flops);
}

Attributes softmax_axis(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("axis",
                 static_cast<std::int64_t>(*resolve_axis(lowering.attributes().integer("axis"),
                                                         lowering.output_type().shape.size())));
  return attributes;
}

// Under autocast CUDA's kernel reads float16 and writes float32; any other format is converted
// first (ATen/native/SoftMax.cpp).
void forward_log_softmax(OperatorLowering& lowering) {
  TensorView x = input_view(lowering, Kernel::log_softmax_forward);
  if (x.type != DataType::float16) x = lowering.cast(x, lowering.output_type().type, "input.cast");
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::log_softmax_forward, "forward", {x}, {y},
                {.attributes = softmax_axis(lowering),
                 .holds = {lowering.input().storage},
                 .flops = element_count(x.shape) * Affine(flops)});
  lowering.save("result", y);
}

void backward_log_softmax(OperatorLowering& lowering) {
  lowering.hold_by_hand();  // a conversion was a node of its own
  const TensorView dy =
      argument_view(lowering, Kernel::log_softmax_backward, 1, lowering.output_gradient(),
                    lowering.saved("result"), "grad.contiguous");
  const DataType input = lowering.input().type;
  const TensorView dx =
      lowering.new_tensor("grad_input", dy.shape, input == DataType::float16 ? input : dy.type,
                          StorageClass::activation_gradient);
  lowering.emit(Kernel::log_softmax_backward, "backward", {lowering.saved("result"), dy}, {dx},
                {.attributes = softmax_axis(lowering),
                 .holds = {lowering.output_gradient().storage},
                 .flops = element_count(dx.shape) * Affine(flops)});
  lowering.give_input_gradient(0, dx);
}

}  // namespace

OperatorRow rows::log_softmax() {
  return {.name = "log_softmax",
          .doc = "logarithm of softmax along an axis",
          .attributes = {{.name = "axis",
                          .type = AttributeType::integer,
                          .doc = "which axis; negative counts from the last",
                          .default_value = std::int64_t{-1}}},
          .infer = infer_log_softmax,
          .lowering = {.stowage = {forward_log_softmax, backward_log_softmax},
                       .pytorch = {forward_log_softmax, backward_log_softmax, true}},
          .autocast = AutocastClass::float32};
}

}  // namespace stowage
