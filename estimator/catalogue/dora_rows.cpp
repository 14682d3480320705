// The operators that DoRA adds to an adapter (Liu et al., "DoRA: Weight-Decomposed Low-Rank
// Adaptation", 2024), as peft 0.21 runs it (tuners/lora/dora.py, DoraLinearLayer). The room `adapt`
// puts these among rows of the catalogue, one for each call of PyTorch's.
#include <fmt/format.h>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

// ---- identity_matrix: torch.eye

tl::expected<Inference, InferenceError> infer_identity_matrix(const Attributes& attributes,
                                                              std::span<const TensorType>) {
  const Affine size = attributes.integer("size");
  Inference result;
  result.outputs = {{{size, size}, DataType::float32}};  // the adapters' format: makes_floats
  return result;
}

Attributes fill_value(double value) {
  Attributes attributes;
  attributes.set("value", value);
  return attributes;
}

void forward_identity_matrix_pytorch(OperatorLowering& lowering) {
  lowering.emit(Kernel::fill, "forward", {}, {lowering.new_output()},
                {.attributes = fill_value(0)});
}

/// Fills the matrix with ones and clears both triangles beside the diagonal.
void forward_identity_matrix_stowage(OperatorLowering& lowering) {
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::fill, "ones", {}, {y}, {.attributes = fill_value(1)});
  for (const bool upper : {false, true}) {
    Attributes side;
    side.set("diagonal", std::int64_t{0});
    side.set("upper", upper);
    lowering.emit(Kernel::triangle, upper ? "forward" : "lower", {y}, {y},
                  {.attributes = std::move(side)});
  }
}

// ---- weight_norm: ||w + factor * update||, a row each, detached

tl::expected<Inference, InferenceError> infer_weight_norm(const Attributes&,
                                                          std::span<const TensorType> inputs) {
  if (inputs[0].shape != inputs[1].shape) {
    return refuse(fmt::format("the update {} is not the weight's {}", to_string(inputs[1].shape),
                              to_string(inputs[0].shape)),
                  {}, 1);
  }
  Inference result;
  result.outputs = {{{inputs[0].shape.front()}, promoted(inputs[0], inputs[1])}};
  result.flops = element_count(inputs[0].shape) * Affine(4);
  return result;
}

void forward_weight_norm(OperatorLowering& lowering) {
  const TensorView w = lowering.input(0), update = lowering.input(1);
  const Affine elements = element_count(w.shape);
  const TensorView scaled = ordered_like(
      lowering.new_tensor("scaled", update.shape, update.type, StorageClass::activation), update);
  NodeExtras by_factor{.flops = elements};
  by_factor.attributes.set("offset", 0.0);
  lowering.emit(Kernel::scale, "scaled", {update}, {scaled}, std::move(by_factor));
  const TensorView sum =
      ordered_like(lowering.new_tensor("adapted", w.shape, lowering.output_type().type,
                                       StorageClass::activation),
                   w);
  lowering.emit(Kernel::add, "adapted", {w, scaled}, {sum}, {.flops = elements});
  NodeExtras norm{.flops = elements * Affine(2)};
  norm.attributes.set("axes", std::vector<std::int64_t>{1});
  norm.attributes.set("operation", std::string("norm"));
  norm.attributes.set("p", 2.0);
  lowering.emit(Kernel::statistic_forward, "forward", {sum}, {lowering.new_output()},
                std::move(norm));
}

// ---- frame_end: where a function returns

tl::expected<Inference, InferenceError> infer_frame_end(const Attributes&,
                                                        std::span<const TensorType> inputs) {
  Inference result;
  result.outputs = {inputs[0]};
  return result;
}

void forward_frame_end_stowage(OperatorLowering& lowering) {
  lowering.set_output(0, lowering.input(0));
}

void forward_frame_end_pytorch(OperatorLowering& lowering) {
  std::vector<StorageId> variables;
  variables.reserve(static_cast<std::size_t>(lowering.input_count()));
  for (int i = 0; i < lowering.input_count(); ++i) variables.push_back(lowering.input(i).storage);
  lowering.also_hold(variables);
  lowering.set_output(0, lowering.input(0));
}

// ---- copied: Tensor.clone()

tl::expected<Inference, InferenceError> infer_copied(const Attributes&,
                                                     std::span<const TensorType> inputs) {
  Inference result;
  result.outputs = {inputs[0]};
  return result;
}

void forward_copied(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  lowering.emit(Kernel::copy, "forward", {x}, {new_output_like(lowering, x)});
}

void backward_copied(OperatorLowering& lowering) {
  lowering.give_input_gradient(0, lowering.output_gradient());
}

// ---- base_product: what a base layer without its bias makes of its input dropped out

tl::expected<Inference, InferenceError> infer_base_product(const Attributes&,
                                                           std::span<const TensorType> inputs) {
  Inference result;
  result.outputs = {{inputs[2].shape, promoted(inputs[0], inputs[1])}};
  result.flops = element_count(inputs[2].shape) * Affine(2) * inputs[1].shape.back();
  return result;
}

void forward_base_product(OperatorLowering& lowering) {
  if (!lowering.training()) {  // nothing is dropped out: the layer's own result
    const TensorView y = lowering.input(2);
    if (lowering.input_count() < 4) return lowering.set_output(0, y);
    lowering.emit(Kernel::subtract, "forward", {y, lowering.input(3)},
                  {new_output_like(lowering, y)}, {.flops = element_count(y.shape)});
    return;
  }
  const TensorView x = lowering.contiguous(lowering.input(0), "input.contiguous");
  const TensorView w = lowering.contiguous(lowering.input(1), "weight.contiguous");
  lowering.emit(
      Kernel::linear_forward, "forward", {x, w}, {lowering.new_output()},
      {.flops = element_count(lowering.output_type().shape) * Affine(2) * w.shape.back()});
  if (lowering.input_needs_gradient(0)) lowering.save("weight", w);
}

void backward_base_product(OperatorLowering& lowering) {
  if (!lowering.input_needs_gradient(0)) return;
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  const TensorView w = lowering.saved("weight");
  TensorView dx = lowering.new_input_gradient(0);
  dx.is_view = dx.shape.size() != 2;  // the product is of the flattened gradient
  lowering.emit(Kernel::linear_backward_data, "backward.data", {dy, w}, {dx},
                {.flops = element_count(dy.shape) * Affine(2) * w.shape.back()});
  lowering.give_input_gradient(0, dx);
}

}  // namespace

const OperatorRow& identity_matrix_row() {
  static const OperatorRow row{
      .name = "identity_matrix",
      .doc = "ones on a diagonal",
      .attributes = {{.name = "size", .type = AttributeType::integer, .doc = "rows", .minimum = 1}},
      .min_inputs = 0,
      .max_inputs = 0,
      .infer = infer_identity_matrix,
      .lowering = {.stowage = {forward_identity_matrix_stowage, nullptr},
                   .pytorch = {forward_identity_matrix_pytorch, nullptr}},
      .makes_floats = true};
  return row;
}

const OperatorRow& weight_norm_row() {
  static const OperatorRow row{
      .name = "weight_norm",
      .doc = "of each row of a weight and its scaled update",
      .attributes = {{.name = "factor", .type = AttributeType::real, .doc = "of the update"}},
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = infer_weight_norm,
      .lowering = {.stowage = {forward_weight_norm, nullptr}}};
  return row;
}

const OperatorRow& frame_end_row() {
  static const OperatorRow row{.name = "frame_end",
                               .doc = "where a function's variables go",
                               .max_inputs = -1,
                               .infer = infer_frame_end,
                               .lowering = {.stowage = {forward_frame_end_stowage, nullptr},
                                            .pytorch = {forward_frame_end_pytorch, nullptr}}};
  return row;
}

const OperatorRow& copied_row() {
  static const OperatorRow row{.name = "copied",
                               .doc = "a copy",
                               .infer = infer_copied,
                               .lowering = {.stowage = {forward_copied, backward_copied}}};
  return row;
}

const OperatorRow& base_product_row() {
  static const OperatorRow row{
      .name = "base_product",
      .doc = "a frozen layer's product with an input that is dropped out",
      .min_inputs = 3,
      .max_inputs = 4,
      .infer = infer_base_product,
      .lowering = {.stowage = {forward_base_product, backward_base_product}},
      .autocast = AutocastClass::lower};
  return row;
}

}  // namespace stowage
