// softmax along an axis: it saves its result.
#include <fmt/format.h>

#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/held_weights.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t softmax_flops_per_element = 5;  // an element

tl::expected<Inference, InferenceError> infer_softmax(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  if (!resolve_axis(attributes.integer("axis"), x.shape.size())) {
    return refuse(fmt::format("axis {} is outside its input's shape {}", attributes.integer("axis"),
                              to_string(x.shape)),
                  "axis", 0);
  }
  Inference result;
  result.outputs = {x};
  result.flops = element_count(x.shape) * Affine(softmax_flops_per_element);
  return result;
}

Attributes own_softmax_attributes(const OperatorLowering& lowering) {
  const auto axis =
      resolve_axis(lowering.attributes().integer("axis"), lowering.output_type().shape.size());
  Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(*axis));
  attributes.set("causal", false);
  return attributes;
}

// Under autocast CUDA's kernel reads float16 and writes float32; any other format is converted
// first (ATen/native/SoftMax.cpp).
TensorView softmax_input(OperatorLowering& lowering) {
  const TensorView x = input_view(lowering, Kernel::softmax_forward);
  if (x.type == DataType::float16) return x;
  return lowering.cast(x, lowering.output_type().type, "input.cast");
}

/// softmax(x, dtype=torch.float32).to(x.dtype): of 16 bits the result is kept in float32.
bool widens(const OperatorLowering& lowering) {
  return lowering.attributes().boolean("upcast") &&
         element_size(lowering.output_type().type) < element_size(DataType::float32);
}

void forward_wide_softmax(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous_within(lowering.input(), "input.contiguous");
  const TensorView wide = lowering.cast(x, DataType::float32, "input.wide");
  const TensorView y =
      lowering.new_tensor("result.wide", x.shape, DataType::float32, StorageClass::activation);
  lowering.emit(Kernel::softmax_forward, "wide", {wide}, {y},
                {.attributes = own_softmax_attributes(lowering),
                 .holds = {lowering.input().storage},
                 .flops = element_count(x.shape) * Affine(softmax_flops_per_element)});
  lowering.save("result", y);
  lowering.emit(Kernel::cast, "forward", {y}, {lowering.new_output()},
                {.holds = {lowering.input().storage}});
}

/// What the kernel of softmax's backward makes besides its result: PyTorch's a product, ours
/// nothing.
using BackwardScratch = std::vector<StorageId> (*)(OperatorLowering&, const TensorView& result);

std::vector<StorageId> no_scratch(OperatorLowering&, const TensorView&) { return {}; }

std::vector<StorageId> product_scratch(OperatorLowering& lowering, const TensorView& result) {
  return {new_softmax_product(lowering, result)};
}

template <BackwardScratch scratch>
void backward_wide_softmax(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const TensorView y = lowering.saved("result");
  const auto made = [&](std::string_view name, DataType type) {
    return lowering.new_tensor(name, y.shape, type, StorageClass::activation_gradient);
  };
  const TensorView given =
      lowering.contiguous_within(lowering.output_gradient(), "grad.contiguous");
  const TensorView dy = made("grad.wide", y.type);
  lowering.emit(Kernel::cast, "backward.grad.wide", {given}, {dy});
  const TensorView dx = made("grad_input.wide", y.type);
  lowering.emit(Kernel::softmax_backward, "backward", {y, dy}, {dx},
                {.attributes = own_softmax_attributes(lowering),
                 .temporaries = scratch(lowering, y),
                 .flops = element_count(dx.shape) * Affine(softmax_flops_per_element)});
  const TensorView narrow = made("grad_input", lowering.input().type);
  lowering.emit(Kernel::cast, "backward.narrow", {dx}, {narrow});
  lowering.give_input_gradient(0, narrow);
}

void forward_softmax(OperatorLowering& lowering) {
  if (widens(lowering)) return forward_wide_softmax(lowering);
  const TensorView x = softmax_input(lowering);
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::softmax_forward, "forward", {x}, {y},
                {.attributes = own_softmax_attributes(lowering),
                 .holds = {lowering.input().storage},
                 .flops = element_count(x.shape) * Affine(softmax_flops_per_element)});
  lowering.save("result", y);
}

template <BackwardScratch scratch>
void backward_softmax(OperatorLowering& lowering) {
  if (widens(lowering)) return backward_wide_softmax<scratch>(lowering);
  lowering.hold_by_hand();  // a conversion was a node of its own
  const TensorView y = lowering.saved("result");
  const TensorView dy = argument_view(lowering, Kernel::softmax_backward, 1,
                                      lowering.output_gradient(), y, "grad.contiguous");
  const DataType input = lowering.input().type;
  const TensorView dx =
      lowering.new_tensor("grad_input", y.shape, input == DataType::float16 ? input : y.type,
                          StorageClass::activation_gradient);
  lowering.emit(Kernel::softmax_backward, "backward", {y, dy}, {dx},
                {.attributes = own_softmax_attributes(lowering),
                 .temporaries = scratch(lowering, y),
                 .holds = {lowering.output_gradient().storage},
                 .flops = element_count(dx.shape) * Affine(softmax_flops_per_element)});
  lowering.give_input_gradient(0, dx);
}

}  // namespace

AttributeSpec held_attribute() {
  return {.name = "held",
          .type = AttributeType::choice,
          .doc =
              "of attention, in inference: variables hold queries, keys, values and the result "
              "until the module around it is done, or (layer) the result until the repeated "
              "layer is",
          .default_value = std::string("nothing"),
          .choices = {"nothing", "module", "layer"}};
}

OperatorRow rows::softmax() {
  return {
      .name = "softmax",
      .doc = "normalized exponentials along an axis",
      .attributes = {{.name = "axis",
                      .type = AttributeType::integer,
                      .doc = "which axis; negative counts from the last",
                      .default_value = std::int64_t{-1}},
                     {.name = "upcast",
                      .type = AttributeType::boolean,
                      .doc = "of 16 bits the result is made and kept in float32, then converted",
                      .default_value = false},
                     held_attribute()},
      .infer = infer_softmax,
      .lowering = {.stowage = {forward_softmax, backward_softmax<no_scratch>},
                   .pytorch = {forward_softmax, backward_softmax<product_scratch>, true}},
      .autocast = AutocastClass::float32};
}

}  // namespace stowage
