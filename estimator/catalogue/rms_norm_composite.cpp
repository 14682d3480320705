#include "estimator/catalogue/rms_norm_composite.hpp"

#include <algorithm>
#include <string>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/normalization.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

bool is_gemma(const OperatorLowering& lowering) {
  return lowering.op().row->name == "rms_norm_plus_one";
}
/// The product with the weight is not in the input's 16 bits, and is converted last.
bool is_wide(const OperatorLowering& lowering) {
  return lowering.op().row->name == "rms_norm_wide";
}
bool is_t5(const OperatorLowering& lowering) {
  return !is_gemma(lowering) && !is_wide(lowering) &&
         lowering.attributes().text("implementation") == "composite_t5";
}

struct RmsNormStep {
  Kernel kernel;
  std::string_view suffix;
  std::vector<TensorView> reads;
  std::vector<StorageId> holds = {};
};

TensorView run(OperatorLowering& lowering, RmsNormStep step, const Shape& shape, DataType type,
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

/// The formats of the normalized input: in the product with the statistic, and in that with the
/// weight.
struct RmsNormFormats {
  DataType product = DataType::float32, kept = DataType::float32;
};

RmsNormFormats formats_of(const OperatorLowering& lowering) {
  const DataType input = lowering.input().type;
  if (is_gemma(lowering) || is_wide(lowering)) return {DataType::float32, DataType::float32};
  if (!is_t5(lowering)) return {DataType::float32, input};
  const DataType product = promoted(input, DataType::float32);
  const DataType weight = has_rms_norm_scale(lowering) ? lowering.parameter(0).type : input;
  return {product, element_size(weight) == 2 ? weight : product};
}

/// Emits the product with the statistic, in the format of the next operation; it is the last call
/// if there is no weight.
TensorView multiplied_by_rstd(OperatorLowering& lowering, const TensorView& factor,
                              const TensorView& rstd, std::vector<StorageId>& locals) {
  const RmsNormFormats formats = formats_of(lowering);
  const auto made = [&](std::string_view suffix, DataType type, bool last) {
    return last ? new_output_like(lowering, factor)
                : ordered_like(
                      lowering.new_tensor(suffix, factor.shape, type, StorageClass::activation),
                      factor);
  };
  const bool converts = formats.kept != formats.product;
  TensorView normalized =
      made("normalized", formats.product, !has_rms_norm_scale(lowering) && !converts);
  lowering.emit(Kernel::multiply, "normalized", {factor, rstd}, {normalized},
                {.holds = locals, .flops = element_count(factor.shape)});
  if (!converts) return normalized;
  // T5's variable is the converted tensor from here on.
  if (!is_t5(lowering)) locals.push_back(normalized.storage);
  TensorView narrow = made("narrow", formats.kept, !has_rms_norm_scale(lowering));
  lowering.emit(Kernel::cast, "narrow", {normalized}, {narrow}, {.holds = locals});
  return narrow;
}

/// Emits the product with 1 + weight, and its conversion.
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

/// The format of the wide norm's product with its weight.
DataType wide_product_type(const OperatorLowering& lowering) {
  return promoted(lowering.parameter(0).type, DataType::float32);
}

/// Emits the product with the weight in its own format, and its conversion.
void scaled_and_converted(OperatorLowering& lowering, const TensorView& normalized,
                          std::vector<StorageId> locals) {
  const TensorView product =
      ordered_like(lowering.new_tensor("scaled", normalized.shape, wide_product_type(lowering),
                                       StorageClass::activation),
                   normalized);
  lowering.emit(Kernel::multiply, "scaled", {lowering.parameter(0), normalized}, {product},
                {.holds = locals, .flops = element_count(normalized.shape)});
  locals.push_back(normalized.storage);
  lowering.emit(Kernel::cast, "forward", {product}, {new_output_like(lowering, product)},
                {.holds = std::move(locals)});
}

/// `gradient` converted to another format, by the engine or by the backward of a conversion.
TensorView cast_gradient(OperatorLowering& lowering, const TensorView& gradient, DataType type,
                         std::string_view suffix) {
  if (gradient.type == type) return gradient;
  return run(lowering, {Kernel::cast, suffix, {gradient}}, gradient.shape, type,
             StorageClass::activation_gradient);
}

/// Gives the weight its gradient, the sum of `product`, in its own format. `holds`: what the node
/// has saved and made.
void give_summed_weight(OperatorLowering& lowering, const TensorView& product,
                        const std::vector<StorageId>& holds) {
  const TensorView w = lowering.parameter(0);
  const bool converts = w.type != product.type;
  const TensorView sum = converts ? lowering.new_tensor("grad_weight.wide", w.shape, product.type,
                                                        StorageClass::activation_gradient)
                                  : lowering.new_parameter_gradient(0);
  lowering.emit(Kernel::sum_to_shape, "backward.weight.sum", {product}, {sum},
                {.holds = holds, .flops = element_count(product.shape)});
  if (!converts) return lowering.give_parameter_gradient(0, sum);
  const TensorView narrow = lowering.new_parameter_gradient(0);
  lowering.emit(Kernel::cast, "backward.weight.narrow", {sum}, {narrow}, {.holds = holds});
  lowering.give_parameter_gradient(0, narrow);
}

/// Backward of the product with the weight: returns the gradient of the other factor.
TensorView weight_backward(OperatorLowering& lowering, const TensorView& given, DataType kept) {
  const TensorView w = lowering.parameter(0);
  const TensorView dy =
      is_wide(lowering) ? cast_gradient(lowering, given, kept, "backward.output.wide") : given;
  const auto emit = [&](RmsNormStep step) {
    return run(lowering, std::move(step), dy.shape, dy.type, StorageClass::activation_gradient);
  };
  if (!lowering.parameter_needs_gradient(0)) {
    return cast_gradient(lowering, emit({Kernel::multiply, "backward.scaled", {dy, w}}), kept,
                         "backward.scaled.narrow");
  }
  const TensorView normalized = lowering.saved("normalized");
  const TensorView product = emit({Kernel::multiply, "backward.weight", {dy, normalized}});
  const TensorView scaled = emit({Kernel::multiply, "backward.scaled", {dy, w}});
  std::vector<StorageId> holds{dy.storage, normalized.storage};
  if (is_wide(lowering)) holds.push_back(scaled.storage);
  give_summed_weight(lowering, product, holds);
  return cast_gradient(lowering, scaled, kept, "backward.scaled.narrow");
}

/// As above, for the product with 1 + weight.
TensorView one_plus_weight_backward(OperatorLowering& lowering, const TensorView& given) {
  const TensorView dy = cast_gradient(lowering, given, DataType::float32, "backward.output.wide");
  const TensorView factor = lowering.saved("weight");
  const auto emit = [&](RmsNormStep step, const Shape& shape, DataType type) {
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

/// The gradient of x through the mean of its squares. `grad_rstd`: the gradient of the statistic.
TensorView through_statistic(OperatorLowering& lowering, const TensorView& grad_rstd) {
  const TensorView x = lowering.saved("input");
  const TensorView rstd = lowering.saved("rstd");
  const auto emit = [&](RmsNormStep step, const Shape& shape) {
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

}  // namespace

bool has_rms_norm_scale(const OperatorLowering& lowering) {
  const Attributes& attributes = lowering.attributes();
  return !attributes.has("affine") || attributes.boolean("affine");
}

Shape rms_norm_statistics_shape(const OperatorLowering& lowering, const TensorView& x) {
  Shape shape = x.shape;
  const auto axes = static_cast<std::size_t>(lowering.attributes().integer("axes"));
  for (std::size_t i = shape.size() - axes; i < shape.size(); ++i) shape[i] = 1;
  return shape;
}

void forward_rms_norm_composite(OperatorLowering& lowering) {
  const TensorView input = lowering.input();
  const Shape small = rms_norm_statistics_shape(lowering, input);
  const auto emit = [&](RmsNormStep step, const Shape& shape) {
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
  if (!has_rms_norm_scale(lowering)) return;
  if (is_gemma(lowering)) return scaled_by_one_plus_weight(lowering, normalized);
  if (is_wide(lowering) && lowering.output_type().type != wide_product_type(lowering)) {
    scaled_and_converted(lowering, normalized, std::move(locals));
  } else {
    lowering.emit(Kernel::multiply, "forward", {lowering.parameter(0), normalized},
                  {new_output_like(lowering, normalized)},
                  {.holds = std::move(locals), .flops = element_count(x.shape)});
  }
  lowering.save("weight", lowering.parameter(0));
  if (lowering.parameter_needs_gradient(0)) lowering.save("normalized", normalized);
}

void backward_rms_norm_composite(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const RmsNormFormats formats = formats_of(lowering);
  const DataType input = lowering.input().type;
  const TensorView x = lowering.saved("input");
  const TensorView rstd = lowering.saved("rstd");
  const bool casts = input != x.type;
  const TensorView factor = casts && is_t5(lowering) ? lowering.saved("narrow_input") : x;
  TensorView dy = lowering.output_gradient();
  if (has_rms_norm_scale(lowering)) {
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

}  // namespace stowage
