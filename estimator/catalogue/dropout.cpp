// dropout: in training a one-byte mask an element is saved (CUDA's native_dropout), in inference or
// with p = 0 the output is the input.
#include "estimator/catalogue/dropout.hpp"

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

Attributes dropout_attributes(const OperatorLowering& lowering, double p) {
  // Distinct for each layer and micro-batch, and the same whenever the step is lowered again.
  constexpr std::int64_t micro_batch_stride = 1'000'003;
  Attributes attributes;
  attributes.set("p", p);
  attributes.set("seed", std::int64_t{lowering.op().outputs.front().value} +
                             lowering.micro_batch() * micro_batch_stride);
  return attributes;
}

namespace {

tl::expected<Inference, InferenceError> infer(const Attributes&,
                                              std::span<const TensorType> inputs) {
  return infer_elementwise(inputs, 1);
}

bool is_identity(const OperatorLowering& lowering) {
  return !lowering.training() || lowering.attributes().real("p") == 0;
}

void forward(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  if (is_identity(lowering)) return lowering.set_output(0, x);
  const TensorView y = lowering.new_output();
  const TensorView mask =
      lowering.new_tensor("mask", x.shape, DataType::boolean, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::dropout_forward, "forward", {x}, {y, mask},
                {.attributes = dropout_attributes(lowering, lowering.attributes().real("p")),
                 .flops = element_count(x.shape)});
  lowering.save("mask", mask);
}

void backward(OperatorLowering& lowering) {
  if (is_identity(lowering)) {
    lowering.give_input_gradient(0, lowering.output_gradient());
    return;
  }
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::dropout_backward, "backward",
                {lowering.output_gradient(), lowering.saved("mask")}, {dx},
                {.attributes = dropout_attributes(lowering, lowering.attributes().real("p")),
                 .flops = element_count(dx.shape)});
  lowering.give_input_gradient(0, dx);
}

}  // namespace

OperatorRow rows::dropout() {
  return {.name = "dropout",
          .doc = "zero elements at random in training",
          .attributes = {{.name = "p",
                          .type = AttributeType::real,
                          .doc = "probability of a zero",
                          .default_value = 0.5,
                          .minimum = 0,
                          .maximum = 0.999999}},
          .infer = infer,
          .lowering = {LoweringRules{forward, backward}, LoweringRules{forward, backward}}};
}

}  // namespace stowage
