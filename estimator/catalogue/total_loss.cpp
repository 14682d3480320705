#include <fmt/format.h>

#include <optional>

#include "estimator/catalogue/loss.hpp"

namespace stowage {

namespace {

double weight(const OperatorLowering& lowering) {
  const Attributes& attributes = lowering.attributes();
  return attributes.has("weight") ? attributes.real("weight") : 1;
}

void emit_weighting(OperatorLowering& lowering, std::string_view name, const TensorView& from,
                    const TensorView& to) {
  Attributes attributes;
  attributes.set("factor", weight(lowering));
  attributes.set("offset", 0.0);
  lowering.emit(Kernel::scale, name, {from}, {to}, {.attributes = attributes, .flops = 1});
}

// loss.backward() starts from a one.
TensorView emit_first_gradient(OperatorLowering& lowering) {
  const TensorView one = lowering.new_tensor("grad", {}, lowering.output_type().type,
                                             StorageClass::activation_gradient);
  Attributes value;
  value.set("value", 1.0);
  lowering.emit(Kernel::fill, "grad", {}, {one}, {.attributes = value});
  lowering.keep_through_backward(one);
  return one;
}

void forward_total_loss(OperatorLowering& lowering) {
  TensorView sum = lowering.input(0);
  const int count = lowering.input_count();
  for (int i = 1; i < count; ++i) {
    const bool last = i + 1 == count;
    const TensorView next =
        last ? lowering.new_output()
             : lowering.new_tensor(fmt::format("partial{}", i), {}, lowering.output_type().type,
                                   StorageClass::activation);
    lowering.emit(Kernel::add, last ? std::string("forward") : fmt::format("partial{}", i),
                  {sum, lowering.input(i)}, {next}, {.flops = 1});
    sum = next;
  }
}

/// The losses' kernels take their weight as a number: no scalar flows back.
void backward_total_loss_stowage(OperatorLowering&) {}

void backward_total_loss_pytorch(OperatorLowering& lowering) {
  const TensorView one = emit_first_gradient(lowering);
  for (int i = 0; i < lowering.input_count(); ++i) {
    if (lowering.input_needs_gradient(i)) lowering.give_input_gradient(i, one);
  }
}

tl::expected<Inference, InferenceError> infer_total_loss(const Attributes&,
                                                         std::span<const TensorType> inputs) {
  Inference result;
  result.outputs = {inputs[0]};
  return result;
}

}  // namespace

AttributeSpec weight_attribute() {
  return {.name = "weight",
          .type = AttributeType::real,
          .doc = "what it is multiplied by, as of an auxiliary loss",
          .default_value = 1.0};
}

TensorView new_loss(OperatorLowering& lowering) {
  if (weight(lowering) == 1) return lowering.new_output();
  return lowering.new_tensor("unweighted", {}, lowering.output_type().type,
                             StorageClass::activation);
}

void finish_loss(OperatorLowering& lowering, const TensorView& loss) {
  if (weight(lowering) == 1) return;
  emit_weighting(lowering, "weighted", loss, lowering.new_output());
}

TensorView loss_gradient(OperatorLowering& lowering) {
  const TensorView arrived =
      lowering.has_output_gradient() ? lowering.output_gradient() : emit_first_gradient(lowering);
  if (weight(lowering) == 1) return arrived;
  const TensorView weighted =
      lowering.new_tensor("grad_unweighted", {}, arrived.type, StorageClass::activation_gradient);
  emit_weighting(lowering, "backward.weighted", arrived, weighted);
  return weighted;
}

Attributes gradient_scale(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("scale", weight(lowering));
  return attributes;
}

const OperatorRow& total_loss_row() {
  static const OperatorRow row{
      .name = "total_loss",
      .doc = "sum of the losses",
      .min_inputs = 2,
      .max_inputs = -1,
      .infer = infer_total_loss,
      .lowering = {.stowage = {forward_total_loss, backward_total_loss_stowage},
                   .pytorch = {forward_total_loss, backward_total_loss_pytorch}},
      .is_loss = true};
  return row;
}

}  // namespace stowage
