// dropout, feature_dropout and drop_path; none does anything in inference or with p = 0.
//
// dropout: a one-byte mask an element is saved (CUDA's native_dropout); in place PyTorch takes
// another path and saves noise of the input's format instead.
// feature_dropout: whole channels, that is dropout1d, dropout2d and dropout3d; noise of the input's
// format, one value a channel.
// drop_path: whole samples (stochastic depth); noise of the input's format, one value a sample.
// timm and torchvision multiply by it; transformers divides by what is kept first, which makes a
// tensor more.
#include "estimator/catalogue/dropout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

Attributes dropout_attributes(const OperatorLowering& lowering, double p) {
  // Distinct for each layer, and the same whenever the step is lowered again.
  Attributes attributes;
  attributes.set("p", p);
  attributes.set("seed", std::int64_t{lowering.op().outputs.front().value});
  return attributes;
}

namespace {

tl::expected<Inference, InferenceError> infer_dropout(const Attributes&,
                                                      std::span<const TensorType> inputs) {
  return infer_elementwise(inputs, 1);
}

tl::expected<Inference, InferenceError> infer_features(const Attributes&,
                                                       std::span<const TensorType> inputs) {
  if (inputs[0].shape.size() < 2) {
    return refuse(fmt::format("wants [batch, channels, ...], but its input has shape {}",
                              to_string(inputs[0].shape)),
                  {}, 0);
  }
  return infer_elementwise(inputs, 1);
}

tl::expected<Inference, InferenceError> infer_samples(const Attributes&,
                                                      std::span<const TensorType> inputs) {
  if (inputs[0].shape.empty()) return refuse("wants an axis of samples, but its input has none");
  return infer_elementwise(inputs, 1);
}

bool is_identity(const OperatorLowering& lowering) {
  return !lowering.training() || lowering.attributes().real("p") == 0;
}

double probability(const OperatorLowering& lowering) { return lowering.attributes().real("p"); }

// Noise of x's format over its first `axes` axes, which PyTorch multiplies by.
TensorView make_noise(OperatorLowering& lowering, const TensorView& x, std::size_t axes) {
  Shape shape(x.shape.size(), 1);
  std::copy_n(x.shape.begin(), axes, shape.begin());
  const TensorView noise =
      lowering.new_tensor("noise", shape, x.type, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::fill, "noise", {}, {noise},
                {.attributes = dropout_attributes(lowering, probability(lowering)),
                 .flops = element_count(shape)});
  return noise;
}

void multiply_by(OperatorLowering& lowering, const TensorView& x, const TensorView& noise,
                 bool in_place, std::vector<StorageId> holds = {}) {
  if (in_place) lowering.set_output(0, x);
  const TensorView y = in_place ? x : new_output_like(lowering, x);
  lowering.emit(Kernel::multiply, "forward", {x, noise}, {y},
                {.holds = std::move(holds), .flops = element_count(x.shape)});
  lowering.save("other", noise);
}

TensorView backward_multiply(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const TensorView dx = new_input_gradient_like(lowering, dy);
  lowering.emit(Kernel::multiply, "backward", {dy, lowering.saved("other")}, {dx},
                {.flops = element_count(dx.shape)});
  return dx;
}

void forward_mask(OperatorLowering& lowering, Kernel kernel, std::size_t axes) {
  const TensorView x = lowering.input();
  const TensorView y = new_output_like(lowering, x);
  Shape shape(x.shape.size(), 1);
  std::copy_n(x.shape.begin(), axes, shape.begin());
  const TensorView mask = ordered_like(
      lowering.new_tensor("mask", shape, DataType::boolean, StorageClass::saved_auxiliary), x);
  lowering.emit(kernel, "forward", {x}, {y, mask},
                {.attributes = dropout_attributes(lowering, probability(lowering)),
                 .flops = element_count(x.shape)});
  lowering.save("mask", mask);
}

void backward_mask(OperatorLowering& lowering, Kernel kernel) {
  const TensorView dy = lowering.output_gradient();
  const TensorView dx = new_input_gradient_like(lowering, dy);
  lowering.emit(kernel, "backward", {dy, lowering.saved("mask")}, {dx},
                {.attributes = dropout_attributes(lowering, probability(lowering)),
                 .flops = element_count(dx.shape)});
  lowering.give_input_gradient(0, dx);
}

void forward_dropout_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  if (is_identity(lowering)) return lowering.set_output(0, x);
  forward_mask(lowering, Kernel::dropout_forward, x.shape.size());
}

void backward_dropout_stowage(OperatorLowering& lowering) {
  if (is_identity(lowering)) return lowering.give_input_gradient(0, lowering.output_gradient());
  backward_mask(lowering, Kernel::dropout_backward);
}

void forward_dropout_pytorch(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  if (is_identity(lowering) || !lowering.attributes().boolean("in_place")) {
    return forward_dropout_stowage(lowering);
  }
  multiply_by(lowering, x, make_noise(lowering, x, x.shape.size()), true);
}

void backward_dropout_pytorch(OperatorLowering& lowering) {
  if (!lowering.has_saved("other")) return backward_dropout_stowage(lowering);
  lowering.give_input_gradient(0, backward_multiply(lowering));
}

// Drops whole blocks: elements that differ only beyond the first `axes` axes are dropped together.
void forward_blocks_stowage(OperatorLowering& lowering, std::size_t axes) {
  if (is_identity(lowering)) return lowering.set_output(0, lowering.input());
  forward_mask(lowering, Kernel::feature_dropout_forward, axes);
}

void backward_blocks_stowage(OperatorLowering& lowering) {
  if (is_identity(lowering)) return lowering.give_input_gradient(0, lowering.output_gradient());
  backward_mask(lowering, Kernel::feature_dropout_backward);
}

void forward_blocks_pytorch(OperatorLowering& lowering, std::size_t axes, bool in_place) {
  const TensorView x = lowering.input();
  if (is_identity(lowering)) return lowering.set_output(0, x);
  multiply_by(lowering, x, make_noise(lowering, x, axes), in_place);
}

void backward_blocks_pytorch(OperatorLowering& lowering) {
  if (is_identity(lowering)) return lowering.give_input_gradient(0, lowering.output_gradient());
  lowering.give_input_gradient(0, backward_multiply(lowering));
}

void forward_features_stowage(OperatorLowering& lowering) { forward_blocks_stowage(lowering, 2); }

void forward_features_pytorch(OperatorLowering& lowering) {
  forward_blocks_pytorch(lowering, 2, lowering.attributes().boolean("in_place"));
}

bool divides_first(const OperatorLowering& lowering) {
  return !is_identity(lowering) && lowering.attributes().text("as") == "transformers";
}

void emit_division(OperatorLowering& lowering, std::string_view name, const TensorView& from,
                   const TensorView& to) {
  Attributes attributes;
  attributes.set("factor", 1 / (1 - probability(lowering)));
  attributes.set("offset", 0.0);
  lowering.emit(Kernel::scale, name, {from}, {to},
                {.attributes = attributes, .flops = element_count(from.shape)});
}

void forward_samples_stowage(OperatorLowering& lowering) { forward_blocks_stowage(lowering, 1); }

void forward_samples_pytorch(OperatorLowering& lowering) {
  if (!divides_first(lowering)) return forward_blocks_pytorch(lowering, 1, false);
  const TensorView x = lowering.input();
  const TensorView noise = make_noise(lowering, x, 1);
  const TensorView quotient =
      ordered_like(lowering.new_tensor("quotient", x.shape, x.type, StorageClass::activation), x);
  emit_division(lowering, "quotient", x, quotient);
  // The function's argument is a variable, which holds the tensor to the end.
  multiply_by(lowering, quotient, noise, false, {x.storage});
}

void backward_samples_pytorch(OperatorLowering& lowering) {
  if (!divides_first(lowering)) return backward_blocks_pytorch(lowering);
  lowering.hold_by_hand();  // two autograd nodes
  const TensorView d_quotient = backward_multiply(lowering);
  const TensorView dx = new_input_gradient_like(lowering, d_quotient);
  emit_division(lowering, "backward.quotient", d_quotient, dx);
  lowering.give_input_gradient(0, dx);
}

AttributeSpec probability_attribute(double value) {
  return {.name = "p",
          .type = AttributeType::real,
          .doc = "probability of a zero",
          .default_value = value,
          .minimum = 0,
          .maximum = 0.999999};
}

}  // namespace

OperatorRow rows::dropout() {
  return {.name = "dropout",
          .doc = "zero elements at random in training",
          .attributes = {probability_attribute(0.5), in_place_attribute()},
          .infer = infer_dropout,
          .lowering = {.stowage = {forward_dropout_stowage, backward_dropout_stowage},
                       .pytorch = {forward_dropout_pytorch, backward_dropout_pytorch}}};
}

OperatorRow rows::feature_dropout() {
  return {.name = "feature_dropout",
          .doc = "zero whole channels (axis 1) at random in training, as dropout2d does",
          .attributes = {probability_attribute(0.5), in_place_attribute()},
          .infer = infer_features,
          .lowering = {.stowage = {forward_features_stowage, backward_blocks_stowage},
                       .pytorch = {forward_features_pytorch, backward_blocks_pytorch}}};
}

OperatorRow rows::drop_path() {
  return {.name = "drop_path",
          .doc = "zero whole samples at random in training (stochastic depth)",
          .attributes = {probability_attribute(0.1),
                         {.name = "as",
                          .type = AttributeType::choice,
                          .doc = "whose implementation; transformers' divides before it drops",
                          .default_value = std::string("torchvision"),
                          .choices = {"torchvision", "timm", "transformers"}}},
          .infer = infer_samples,
          .lowering = {.stowage = {forward_samples_stowage, backward_blocks_stowage},
                       .pytorch = {forward_samples_pytorch, backward_samples_pytorch}}};
}

}  // namespace stowage
