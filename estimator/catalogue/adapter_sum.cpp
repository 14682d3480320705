// adapter_sum: a layer's result and what an adapter adds to it.
//
// PyTorch: a product with a number, a sum of two formats, a conversion back; autograd saves nothing
// of them. Backward: the conversion's, then the sum's gradient, which the engine converts for the
// layer before the product's backward runs.
#include <fmt/format.h>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_adapter_sum(const Attributes&,
                                                          std::span<const TensorType> inputs) {
  if (inputs[0].shape != inputs[1].shape) {
    return refuse(fmt::format("the adapter's result {} is not the layer's {}",
                              to_string(inputs[1].shape), to_string(inputs[0].shape)),
                  {}, 1);
  }
  Inference result;
  result.outputs = {inputs[0]};
  result.flops = element_count(inputs[0].shape) * Affine(2);
  return result;
}

TensorView emit_product(OperatorLowering& lowering, std::string_view name, const TensorView& x,
                        const TensorView& product) {
  NodeExtras extras{.flops = element_count(x.shape)};
  extras.attributes.set("offset", 0.0);
  lowering.emit(Kernel::scale, name, {x}, {product}, std::move(extras));
  return product;
}

DataType adapter_sum_type(const OperatorLowering& lowering) {
  return promoted(lowering.input(0).type, lowering.input(1).type);
}

/// `own`: kernels that read one format, of which the operands are converted first.
void forward_adapter_sum(OperatorLowering& lowering, bool own) {
  TensorView result = lowering.input(0), branch = lowering.input(1);
  const DataType type = adapter_sum_type(lowering);
  const Affine elements = element_count(result.shape);
  TensorView part = emit_product(
      lowering, "scaled", branch,
      ordered_like(
          lowering.new_tensor("scaled", branch.shape, branch.type, StorageClass::activation),
          branch));
  if (own) {
    result = lowering.cast(result, type, "result.cast");
    part = lowering.cast(part, type, "scaled.cast");
  }
  if (type == lowering.output_type().type) {
    lowering.emit(Kernel::add, "forward", {result, part}, {new_output_like(lowering, result)},
                  {.flops = elements});
    return;
  }
  const TensorView sum = ordered_like(
      lowering.new_tensor("sum", result.shape, type, StorageClass::activation), result);
  lowering.emit(Kernel::add, "forward", {result, part}, {sum}, {.flops = elements});
  NodeExtras held{.flops = elements};
  if (!own && lowering.input_count() > 2) held.holds = {lowering.input(2).storage};
  lowering.emit(Kernel::cast, "result", {sum}, {new_output_like(lowering, sum)}, std::move(held));
}

void forward_adapter_sum_stowage(OperatorLowering& lowering) {
  forward_adapter_sum(lowering, true);
}
void forward_adapter_sum_pytorch(OperatorLowering& lowering) {
  forward_adapter_sum(lowering, false);
}

void backward_adapter_sum(OperatorLowering& lowering) {
  lowering.hold_by_hand();  // three autograd nodes
  const TensorView dy = lowering.output_gradient();
  const TensorView sum = lowering.cast(dy, adapter_sum_type(lowering), "grad_sum");
  if (lowering.input_needs_gradient(0)) {
    lowering.give_input_gradient(0, sum);
    lowering.deliver_gradients();
  }
  if (!lowering.input_needs_gradient(1)) return;
  const TensorView part = lowering.cast(sum, lowering.input(1).type, "grad_scaled");
  const TensorView d_branch = ordered_like(
      lowering.new_tensor("grad_branch", part.shape, part.type, StorageClass::activation_gradient),
      part);
  emit_product(lowering, "backward.scaled", part, d_branch);
  lowering.give_input_gradient(1, d_branch);
}

}  // namespace

const OperatorRow& adapter_sum_row() {
  static const OperatorRow row{
      .name = "adapter_sum",
      .doc = "a layer's result and an adapter's, scaled",
      .attributes = {{.name = "factor", .type = AttributeType::real, .doc = "of the adapter"}},
      .min_inputs = 2,
      .max_inputs = 3,
      .infer = infer_adapter_sum,
      .lowering = {.stowage = {.forward = forward_adapter_sum_stowage,
                               .backward = backward_adapter_sum,
                               .casts_its_inputs = true},
                   .pytorch = {forward_adapter_sum_pytorch, backward_adapter_sum}}};
  return row;
}

}  // namespace stowage
