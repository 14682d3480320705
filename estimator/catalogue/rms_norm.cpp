// rms_norm: division by the root of the mean square over trailing axes (Zhang and Sennrich, 2019).
//
// PyTorch has two: torch.nn.RMSNorm, whose fused kernel saves the input and one statistic, and what
// the language models of transformers 5.23 write in operators (LlamaRMSNorm.forward): to float32,
// pow, mean, add, rsqrt, mul, back, mul by the weight, each with its own backward. The second is
// lowered operator by operator, with autograd's lifetimes. T5LayerNorm.forward differs in 16 bits:
// what it multiplies is not the float32 copy but the input, which is saved besides.
// GemmaRMSNorm.forward multiplies by 1 + weight, a tensor of its own, in float32, and converts
// last. Our executor runs all of them as one kernel.
#include <fmt/format.h>

#include "estimator/catalogue/as_read.hpp"
#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/normalization.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t rms_norm_flops = 5;

tl::expected<Inference, InferenceError> infer_rms_norm(const Attributes& attributes,
                                                       std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto normalized = normalized_axes(attributes, x);
  if (!normalized) return tl::unexpected(normalized.error());
  Inference result;
  result.outputs = {x};
  if (!attributes.has("affine") || attributes.boolean("affine")) {
    result.parameters.push_back({.name = "weight", .shape = *normalized, .type = x.type});
  }
  result.flops = element_count(x.shape) * Affine(rms_norm_flops);
  return result;
}

bool has_scale(const OperatorLowering& lowering) {
  const Attributes& attributes = lowering.attributes();
  return !attributes.has("affine") || attributes.boolean("affine");
}
bool is_composite_rms_norm(const OperatorLowering& lowering) {
  return lowering.attributes().text("implementation") != "fused";
}
bool is_gemma(const OperatorLowering& lowering) {
  return lowering.op().row->name == "rms_norm_plus_one";
}
bool is_t5(const OperatorLowering& lowering) {
  return !is_gemma(lowering) && lowering.attributes().text("implementation") == "composite_t5";
}

/// x's shape with 1 for the normalized axes.
Shape statistics_shape(const OperatorLowering& lowering, const TensorView& x) {
  Shape shape = x.shape;
  const auto axes = static_cast<std::size_t>(lowering.attributes().integer("axes"));
  for (std::size_t i = shape.size() - axes; i < shape.size(); ++i) shape[i] = 1;
  return shape;
}

// One kernel.

void forward_rms_norm_fused(OperatorLowering& lowering) {
  const TensorView x = input_as_read(lowering, Kernel::rms_norm_forward);
  std::vector<TensorView> reads{x};
  if (has_scale(lowering)) reads.push_back(lowering.parameter(0));
  const TensorView y = lowering.new_output();
  const TensorView rstd =
      lowering.new_tensor("rstd", statistics_shape(lowering, x), statistics_type(x.type),
                          StorageClass::saved_auxiliary);
  lowering.emit(Kernel::rms_norm_forward, "forward", reads, {y, rstd},
                {.flops = element_count(x.shape) * Affine(rms_norm_flops)});
  lowering.save("input", lowering.input());
  if (has_scale(lowering)) lowering.save("weight", lowering.parameter(0));
  lowering.save("rstd", rstd);
}

template <MakeGradients make>
void backward_rms_norm_fused(OperatorLowering& lowering) {
  const TensorView x = as_read(lowering, Kernel::rms_norm_backward, 0, lowering.saved("input"),
                               lowering.saved("input"), "backward.input");
  const TensorView dy = as_read(lowering, Kernel::rms_norm_backward, 1, lowering.output_gradient(),
                                x, "grad.contiguous");
  const TensorView dx = lowering.new_input_gradient();
  std::vector<TensorView> reads{x, dy};
  if (has_scale(lowering)) reads.push_back(lowering.parameter(0));
  reads.push_back(lowering.saved("rstd"));
  const std::vector<TensorView> gradients = make(lowering);
  std::vector<TensorView> writes{dx};
  writes.insert(writes.end(), gradients.begin(), gradients.end());
  lowering.emit(Kernel::rms_norm_backward, "backward", reads, writes,
                {.flops = element_count(x.shape) * Affine(2 * rms_norm_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  give_affine_gradients(lowering, gradients);
}

// Operator by operator.

struct Step {
  Kernel kernel;
  std::string_view suffix;
  std::vector<TensorView> reads;
  std::vector<StorageId> holds = {};
};

TensorView run(OperatorLowering& lowering, Step step, const Shape& shape, DataType type,
               StorageClass storage_class) {
  TensorView y = lowering.new_tensor(step.suffix, shape, type, storage_class);
  for (const TensorView& read : step.reads) {
    if (read.shape != shape) continue;
    y = ordered_like(y, read);
    break;
  }
  lowering.emit(step.kernel, step.suffix, std::move(step.reads), {y},
                {.holds = std::move(step.holds), .flops = element_count(shape)});
  return y;
}

/// Of the normalized input: as it is multiplied by the statistic, and as the weight multiplies it.
struct Formats {
  DataType product = DataType::float32, kept = DataType::float32;
};

Formats formats_of(const OperatorLowering& lowering) {
  const DataType input = lowering.input().type;
  if (is_gemma(lowering)) return {DataType::float32, DataType::float32};
  if (!is_t5(lowering)) return {DataType::float32, input};
  const DataType product = promoted(input, DataType::float32);
  const DataType weight = has_scale(lowering) ? lowering.parameter(0).type : input;
  return {product, element_size(weight) == 2 ? weight : product};
}

/// The product with the statistic, in the format of what comes behind; the last call where there is
/// no weight.
TensorView multiplied_by_rstd(OperatorLowering& lowering, const TensorView& factor,
                              const TensorView& rstd, std::vector<StorageId>& locals) {
  const Formats formats = formats_of(lowering);
  const auto made = [&](std::string_view suffix, DataType type, bool last) {
    return last ? new_output_like(lowering, factor)
                : ordered_like(
                      lowering.new_tensor(suffix, factor.shape, type, StorageClass::activation),
                      factor);
  };
  const bool converts = formats.kept != formats.product;
  const TensorView normalized =
      made("normalized", formats.product, !has_scale(lowering) && !converts);
  lowering.emit(Kernel::multiply, "normalized", {factor, rstd}, {normalized},
                {.holds = locals, .flops = element_count(factor.shape)});
  if (!converts) return normalized;
  // T5's variable is the converted tensor from here on.
  if (!is_t5(lowering)) locals.push_back(normalized.storage);
  const TensorView narrow = made("narrow", formats.kept, !has_scale(lowering));
  lowering.emit(Kernel::cast, "narrow", {normalized}, {narrow}, {.holds = locals});
  return narrow;
}

/// The product with 1 + weight, and its conversion.
void scaled_by_one_plus_weight(OperatorLowering& lowering, const TensorView& normalized) {
  const TensorView weight = lowering.parameter(0);
  const TensorView wide = lowering.cast(weight, DataType::float32, "weight.wide");
  const TensorView factor = run(lowering, {Kernel::scale, "weight.plus_one", {wide}}, weight.shape,
                                DataType::float32, StorageClass::activation);
  const bool converts = lowering.output_type().type != DataType::float32;
  const TensorView product =
      converts ? ordered_like(lowering.new_tensor("scaled", normalized.shape, DataType::float32,
                                                  StorageClass::activation),
                              normalized)
               : new_output_like(lowering, normalized);
  lowering.emit(Kernel::multiply, converts ? "scaled" : "forward", {normalized, factor}, {product},
                {.flops = element_count(normalized.shape)});
  lowering.save("weight", factor);
  if (lowering.parameter_needs_gradient(0)) lowering.save("normalized", normalized);
  if (!converts) return;
  lowering.emit(Kernel::cast, "forward", {product}, {new_output_like(lowering, product)},
                {.holds = {lowering.input().storage}});
}

void forward_rms_norm_composite(OperatorLowering& lowering) {
  const TensorView input = lowering.input();
  const Shape small = statistics_shape(lowering, input);
  const auto emit = [&](Step step, const Shape& shape) {
    return run(lowering, std::move(step), shape, DataType::float32, StorageClass::activation);
  };
  const bool casts = input.type != DataType::float32;
  const TensorView x = casts ? emit({Kernel::cast, "wide", {input}}, input.shape) : input;
  const TensorView square = emit({Kernel::unary_forward, "square", {x}}, x.shape);
  const TensorView variance = emit({Kernel::reduce, "variance", {square}}, small);
  const TensorView shifted = emit({Kernel::scale, "shifted", {variance}}, small);
  const TensorView rstd = emit({Kernel::unary_forward, "rstd", {shifted}}, small);
  lowering.save("input", x);
  lowering.save("rstd", rstd);
  if (casts && is_t5(lowering)) lowering.save("narrow_input", input);
  // `variance` is a local variable: it lives to the end of the function, and the caller's argument
  // does too.
  std::vector<StorageId> locals{variance.storage, input.storage};
  if (is_gemma(lowering)) locals.erase(locals.begin());
  const TensorView normalized =
      multiplied_by_rstd(lowering, is_t5(lowering) ? input : x, rstd, locals);
  if (!has_scale(lowering)) return;
  if (is_gemma(lowering)) return scaled_by_one_plus_weight(lowering, normalized);
  lowering.emit(Kernel::multiply, "forward", {lowering.parameter(0), normalized},
                {new_output_like(lowering, normalized)},
                {.holds = std::move(locals), .flops = element_count(x.shape)});
  lowering.save("weight", lowering.parameter(0));
  if (lowering.parameter_needs_gradient(0)) lowering.save("normalized", normalized);
}

/// `gradient` in another format, as the engine or the backward of a conversion converts it.
TensorView cast_gradient(OperatorLowering& lowering, const TensorView& gradient, DataType type,
                         std::string_view suffix) {
  if (gradient.type == type) return gradient;
  return run(lowering, {Kernel::cast, suffix, {gradient}}, gradient.shape, type,
             StorageClass::activation_gradient);
}

/// Backward of the multiplication by the weight: the gradient of what it multiplied.
TensorView weight_backward(OperatorLowering& lowering, const TensorView& dy, DataType kept) {
  const TensorView w = lowering.parameter(0);
  const auto emit = [&](Step step) {
    return run(lowering, std::move(step), dy.shape, dy.type, StorageClass::activation_gradient);
  };
  if (!lowering.parameter_needs_gradient(0)) {
    return cast_gradient(lowering, emit({Kernel::multiply, "backward.scaled", {dy, w}}), kept,
                         "backward.scaled.narrow");
  }
  const TensorView normalized = lowering.saved("normalized");
  const TensorView product = emit({Kernel::multiply, "backward.weight", {dy, normalized}});
  const TensorView scaled = emit({Kernel::multiply, "backward.scaled", {dy, w}});
  const TensorView dw = lowering.new_parameter_gradient(0);
  lowering.emit(Kernel::sum_to_shape, "backward.weight.sum", {product}, {dw},
                {.holds = {dy.storage, normalized.storage}, .flops = element_count(dy.shape)});
  lowering.give_parameter_gradient(0, dw);
  return cast_gradient(lowering, scaled, kept, "backward.scaled.narrow");
}

/// The same of the multiplication by 1 + weight.
TensorView one_plus_weight_backward(OperatorLowering& lowering, const TensorView& given) {
  const TensorView dy = cast_gradient(lowering, given, DataType::float32, "backward.output.wide");
  const TensorView factor = lowering.saved("weight");
  const auto emit = [&](Step step, const Shape& shape, DataType type) {
    return run(lowering, std::move(step), shape, type, StorageClass::activation_gradient);
  };
  TensorView scaled = emit({Kernel::multiply, "backward.scaled", {dy, factor}}, dy.shape, dy.type);
  if (!lowering.parameter_needs_gradient(0)) return scaled;
  const TensorView normalized = lowering.saved("normalized");
  const TensorView product = emit(
      {Kernel::multiply, "backward.weight", {dy, normalized}, {scaled.storage}}, dy.shape, dy.type);
  const bool converts = lowering.parameter(0).type != DataType::float32;
  const TensorView dw =
      converts ? lowering.new_tensor("grad_weight.wide", factor.shape, DataType::float32,
                                     StorageClass::activation_gradient)
               : lowering.new_parameter_gradient(0);
  lowering.emit(Kernel::sum_to_shape, "backward.weight.sum", {product}, {dw},
                {.holds = {dy.storage, normalized.storage, factor.storage, scaled.storage},
                 .flops = element_count(dy.shape)});
  if (!converts) {
    lowering.give_parameter_gradient(0, dw);
    return scaled;
  }
  const TensorView narrow = lowering.new_parameter_gradient(0);
  lowering.emit(Kernel::cast, "backward.weight.narrow", {dw}, {narrow},
                {.holds = {scaled.storage}});
  lowering.give_parameter_gradient(0, narrow);
  return scaled;
}

/// The gradient that comes to x through the mean of its squares; `grad_rstd` is the statistic's.
TensorView through_statistic(OperatorLowering& lowering, const TensorView& grad_rstd) {
  const TensorView x = lowering.saved("input");
  const TensorView rstd = lowering.saved("rstd");
  const auto emit = [&](Step step, const Shape& shape) {
    return run(lowering, std::move(step), shape, x.type, StorageClass::activation_gradient);
  };
  // (variance + eps) ^ (-1/2): -1/2 rstd^3
  const TensorView cube = emit({Kernel::unary_forward, "backward.cube", {rstd}}, rstd.shape);
  const TensorView slope = emit({Kernel::scale, "backward.slope", {cube}}, rstd.shape);
  const TensorView grad_variance = emit(
      {Kernel::multiply, "backward.variance", {grad_rstd, slope}, {cube.storage, rstd.storage}},
      rstd.shape);
  // mean of squares
  const TensorView grad_square =
      emit({Kernel::expand, "backward.square", {grad_variance}}, x.shape);
  const TensorView power = emit({Kernel::unary_forward, "backward.power", {x}}, x.shape);
  const TensorView twice = emit({Kernel::scale, "backward.twice", {power}}, x.shape);
  return emit(
      {Kernel::multiply, "backward.through", {grad_square, twice}, {power.storage, x.storage}},
      x.shape);
}

void backward_rms_norm_composite(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const Formats formats = formats_of(lowering);
  const DataType input = lowering.input().type;
  const TensorView x = lowering.saved("input");
  const TensorView rstd = lowering.saved("rstd");
  const bool casts = input != x.type;
  const TensorView factor = casts && is_t5(lowering) ? lowering.saved("narrow_input") : x;
  TensorView dy = lowering.output_gradient();
  if (has_scale(lowering)) {
    dy = is_gemma(lowering) ? one_plus_weight_backward(lowering, dy)
                            : weight_backward(lowering, dy, formats.kept);
  }
  if (!lowering.input_needs_gradient()) return;
  dy = cast_gradient(lowering, dy, formats.product, "backward.wide");
  // factor * rstd
  const auto product_with = [&](std::string_view suffix, const TensorView& other) {
    return run(lowering, {Kernel::multiply, suffix, {dy, other}}, x.shape, formats.product,
               StorageClass::activation_gradient);
  };
  const TensorView direct = product_with("backward.direct", rstd);
  const TensorView product = product_with("backward.product", factor);
  const TensorView sum = run(
      lowering, {Kernel::sum_to_shape, "backward.rstd", {product}, {dy.storage, factor.storage}},
      rstd.shape, formats.product, StorageClass::activation_gradient);
  if (!casts || is_t5(lowering)) {
    lowering.give_input_gradient(0, cast_gradient(lowering, direct, input, "backward.direct.cast"));
    lowering.deliver_gradients();
  }
  const TensorView through =
      through_statistic(lowering, cast_gradient(lowering, sum, rstd.type, "backward.rstd.cast"));
  if (!casts || is_t5(lowering)) {
    return lowering.give_input_gradient(
        0, cast_gradient(lowering, through, input, "backward.through.cast"));
  }
  lowering.emit(Kernel::accumulate, "backward.sum", {direct, through}, {direct},
                {.flops = element_count(x.shape)});
  lowering.give_input_gradient(0, cast_gradient(lowering, direct, input, "backward.narrow"));
}

void forward_rms_norm_pytorch(OperatorLowering& lowering) {
  if (is_composite_rms_norm(lowering))
    forward_rms_norm_composite(lowering);
  else
    forward_rms_norm_fused(lowering);
}

void backward_rms_norm_pytorch(OperatorLowering& lowering) {
  if (is_composite_rms_norm(lowering))
    backward_rms_norm_composite(lowering);
  else
    backward_rms_norm_fused<wanted_affine_gradients>(lowering);
}

// Gemma's as one kernel of 1 + weight, which lives to its end.

TensorView one_plus(OperatorLowering& lowering, std::string_view name) {
  const TensorView weight = lowering.parameter(0);
  TensorView factor =
      lowering.new_tensor(name, weight.shape, weight.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("factor", 1.0);
  attributes.set("offset", 1.0);
  lowering.emit(Kernel::scale, name, {weight}, {factor}, {.attributes = attributes});
  return factor;
}

void forward_rms_norm_plus_one(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView factor = one_plus(lowering, "factor");
  const TensorView rstd =
      lowering.new_tensor("rstd", statistics_shape(lowering, x), statistics_type(x.type),
                          StorageClass::saved_auxiliary);
  lowering.emit(Kernel::rms_norm_forward, "forward", {x, factor}, {lowering.new_output(), rstd},
                {.flops = element_count(x.shape) * Affine(rms_norm_flops)});
  lowering.save("input", x);
  lowering.save("rstd", rstd);
}

void backward_rms_norm_plus_one(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView factor = one_plus(lowering, "backward.factor");
  const TensorView dx = lowering.new_input_gradient();
  const std::vector<TensorView> gradients = all_affine_gradients(lowering);
  std::vector<TensorView> writes{dx};
  writes.insert(writes.end(), gradients.begin(), gradients.end());
  lowering.emit(Kernel::rms_norm_backward, "backward",
                {x, lowering.output_gradient(), factor, lowering.saved("rstd")}, writes,
                {.flops = element_count(x.shape) * Affine(2 * rms_norm_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  give_affine_gradients(lowering, gradients);
}

/// Written in operators, what is multiplied is of no class.
AutocastClass rms_norm_autocast(const Attributes& attributes) {
  return attributes.text("implementation") == "fused" ? AutocastClass::float32
                                                      : AutocastClass::as_is;
}

}  // namespace

OperatorRow rows::rms_norm() {
  return {.name = "rms_norm",
          .doc = "division by the root mean square over the last axes",
          .attributes = {normalized_axes_attribute(),
                         {.name = "eps",
                          .type = AttributeType::real,
                          .doc = "added to the mean square",
                          .default_value = 1e-6,
                          .minimum = 0},
                         {.name = "affine",
                          .type = AttributeType::boolean,
                          .doc = "learned scale",
                          .default_value = true},
                         {.name = "implementation",
                          .type = AttributeType::choice,
                          .doc = "PyTorch's kernel, or written in operators as in transformers' "
                                 "LLaMA or T5",
                          .default_value = std::string("fused"),
                          .choices = {"fused", "composite", "composite_t5"}}},
          .infer = infer_rms_norm,
          .lowering = {.stowage = {forward_rms_norm_fused,
                                   backward_rms_norm_fused<all_affine_gradients>},
                       .pytorch = {forward_rms_norm_pytorch, backward_rms_norm_pytorch}},
          .autocast = AutocastClass::float32,
          .autocast_by_attributes = rms_norm_autocast,
          .promotes_with_parameters = true};
}

OperatorRow rows::rms_norm_plus_one() {
  return {.name = "rms_norm_plus_one",
          .doc = "rms_norm with a factor of 1 + a learned one, as Gemma has it",
          .attributes = {normalized_axes_attribute(),
                         {.name = "eps",
                          .type = AttributeType::real,
                          .doc = "added to the mean square",
                          .default_value = 1e-6,
                          .minimum = 0}},
          .infer = infer_rms_norm,
          .lowering = {.stowage = {forward_rms_norm_plus_one, backward_rms_norm_plus_one},
                       .pytorch = {forward_rms_norm_composite, backward_rms_norm_composite}}};
}

}  // namespace stowage
