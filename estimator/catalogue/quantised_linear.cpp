// Linear layers of quantised weights, as bitsandbytes 0.50 and torchao 0.18 run them on a GPU.
//
//   4 bits   forward: the maxima (8 bits, then a sum with the offset), the weight in the input's
//            format, a product (backends/cuda/ops.py, _dequant_linear_fallback). Up to 4 rows one
//            fused kernel runs on every card, without these temporaries
//            (_gemm_4bit_use_custom_cuda), if rows of the weight are whole blocks; up to 1,536 it
//            depends on the card and the shape, and they are counted. Backward: the same again, and
//            the product (autograd/_functions.py, MatMul4Bit). Nothing is saved but the weight.
//   8 bits   forward: the input in float16 and as int8 with a scale a row, a product in int32, its
//            scaling to float16, a conversion (MatMul8bitLt). Columns with outliers (6.0) depend on
//            values, and none are counted. The node keeps the input as an attribute, which lives as
//            long as the graph. Backward: the weight in the input's format, and the product.
//   float8   forward: the weight in float32, times its scales, in the input's format, all three
//            variables of one function; a product, and the bias out of place
//            (quantize_/workflows/float8/float8_tensor.py); autograd saves the last of the three
//            for backward.
//
// Our own kernels dequantise, then multiply, in forward and in backward.
#include <fmt/format.h>

#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t values_a_block = 64, maxima_a_block = 256;
constexpr std::int64_t four_bit_code = 16, eight_bit_code = 256;
/// bitsandbytes' _GEMM_4BIT_CUSTOM_FLOOR_M.
constexpr std::int64_t always_fused_rows = 4;

std::int64_t divided_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

struct LinearSizes {
  std::int64_t in = 0, out = 0;
};

tl::expected<LinearSizes, InferenceError> sizes_of_linear(const Attributes& attributes,
                                                          std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (x.shape.empty()) return refuse("wants at least one axis, but its input is a scalar", {}, 0);
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  if (auto error = want_constant(x.shape.back(), "last axis")) return tl::unexpected(*error);
  return LinearSizes{x.shape.back().constant, attributes.integer("features")};
}

/// The outputs, the weight's bytes, and the bias; the state follows.
Inference infer_quantised(const Attributes& attributes, const TensorType& x, LinearSizes sizes,
                          Shape stored) {
  Inference result;
  Shape y = x.shape;
  y.back() = sizes.out;
  result.outputs = {{y, x.type}};
  result.parameters.push_back(
      {.name = "weight", .shape = std::move(stored), .type = DataType::uint8});
  if (attributes.boolean("bias")) {
    result.parameters.push_back({.name = "bias", .shape = {sizes.out}, .type = x.type});
  }
  result.flops = element_count(y) * Affine(2 * sizes.in);
  return result;
}

ParameterSpec state_of(std::string_view name, Shape shape, DataType type = DataType::float32) {
  return {.name = name, .shape = std::move(shape), .type = type, .is_buffer = true};
}

tl::expected<Inference, InferenceError> infer_4bit(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  const auto sizes = sizes_of_linear(attributes, inputs);
  if (!sizes) return tl::unexpected(sizes.error());
  const std::int64_t values = sizes->in * sizes->out;
  Inference result = infer_quantised(attributes, inputs[0], *sizes, {divided_up(values, 2), 1});
  const std::int64_t blocks = divided_up(values, values_a_block);
  const bool twice = attributes.boolean("double_quant");
  result.parameters.push_back(
      state_of("weight.absmax", {blocks}, twice ? DataType::uint8 : DataType::float32));
  result.parameters.push_back(state_of("weight.quant_map", {four_bit_code}));
  if (!twice) return result;
  result.parameters.push_back(
      state_of("weight.nested_absmax", {divided_up(blocks, maxima_a_block)}));
  result.parameters.push_back(state_of("weight.nested_quant_map", {eight_bit_code}));
  result.parameters.push_back(state_of("weight.nested_offset", {}));
  return result;
}

tl::expected<Inference, InferenceError> infer_8bit(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  const auto sizes = sizes_of_linear(attributes, inputs);
  if (!sizes) return tl::unexpected(sizes.error());
  Inference result = infer_quantised(attributes, inputs[0], *sizes, {sizes->out, sizes->in});
  result.parameters.push_back(state_of("weight.SCB", {sizes->out}));
  return result;
}

tl::expected<Inference, InferenceError> infer_float8(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const auto sizes = sizes_of_linear(attributes, inputs);
  if (!sizes) return tl::unexpected(sizes.error());
  Inference result = infer_quantised(attributes, inputs[0], *sizes, {sizes->out, sizes->in});
  result.parameters.push_back(state_of("weight.scale", {sizes->out, 1}));
  return result;
}

int first_state(const OperatorLowering& lowering) {
  return lowering.attributes().boolean("bias") ? 2 : 1;
}

Shape weight_shape(const OperatorLowering& lowering) {
  return {lowering.attributes().integer("features"), lowering.input().shape.back()};
}

NodeExtras with_attribute(std::string_view name, AttributeValue value, Affine flops) {
  NodeExtras extras{.flops = flops};
  extras.attributes.set(name, std::move(value));
  return extras;
}

/// Makes a tensor that a library's function allocates internally; the planner treats it like any
/// other.
TensorView own_tensor(OperatorLowering& lowering, std::string_view name, const Shape& shape,
                      DataType type) {
  return lowering.new_tensor(name, shape, type, StorageClass::activation);
}

void emit_dequantised_rows(OperatorLowering& lowering, std::string_view pass,
                           std::string_view encoding, const TensorView& w, NodeExtras extras) {
  extras.attributes.set("encoding", std::string(encoding));
  lowering.emit(Kernel::dequantize_rows, fmt::format("{}.dequantise", pass),
                {lowering.parameter(0), lowering.parameter(first_state(lowering))}, {w},
                std::move(extras));
}

/// The maxima of the blocks. If they are quantised too, they are dequantised first, and PyTorch
/// adds the offset (in forward out of place).
TensorView maxima(OperatorLowering& lowering, std::string_view pass) {
  const int at = first_state(lowering);
  const TensorView& absmax = lowering.parameter(at);
  if (!lowering.attributes().boolean("double_quant")) return absmax;
  const TensorView made =
      own_tensor(lowering, fmt::format("{}.absmax", pass), absmax.shape, DataType::float32);
  lowering.emit(
      Kernel::dequantize_blocks, fmt::format("{}.absmax", pass),
      {absmax, lowering.parameter(at + 2), lowering.parameter(at + 3), lowering.parameter(at + 4)},
      {made}, with_attribute("block", maxima_a_block, element_count(absmax.shape) * Affine(2)));
  return made;
}

KernelNode& emit_dequantised_4bit(OperatorLowering& lowering, std::string_view pass,
                                  const TensorView& absmax, const TensorView& w) {
  return lowering.emit(
      Kernel::dequantize_4bit, fmt::format("{}.dequantise", pass),
      {lowering.parameter(0), absmax, lowering.parameter(first_state(lowering) + 1)}, {w},
      with_attribute("block", values_a_block, element_count(w.shape)));
}

TensorView dequantised_4bit(OperatorLowering& lowering, std::string_view pass,
                            const TensorView& absmax) {
  const TensorView w = own_tensor(lowering, fmt::format("{}.weight", pass), weight_shape(lowering),
                                  lowering.input().type);
  emit_dequantised_4bit(lowering, pass, absmax, w);
  return w;
}

TensorView dequantised_rows(OperatorLowering& lowering, std::string_view pass,
                            std::string_view encoding) {
  const Shape shape = weight_shape(lowering);
  const TensorView w =
      own_tensor(lowering, fmt::format("{}.weight", pass), shape, lowering.input().type);
  emit_dequantised_rows(lowering, pass, encoding, w, {.flops = element_count(shape)});
  return w;
}

Affine product_flops(const OperatorLowering& lowering) {
  return element_count(lowering.input().shape) * Affine(2) *
         Affine(lowering.attributes().integer("features"));
}

KernelNode& emit_linear(OperatorLowering& lowering, const TensorView& w) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  std::vector<TensorView> reads{x, w};
  if (lowering.attributes().boolean("bias")) reads.push_back(lowering.parameter(1));
  return lowering.emit(Kernel::linear_forward, "forward", std::move(reads), {lowering.new_output()},
                       {.flops = product_flops(lowering)});
}

/// x w^T, and the bias is added out of place.
void emit_unbiased_linear(OperatorLowering& lowering, const TensorView& w) {
  if (!lowering.attributes().boolean("bias")) {
    emit_linear(lowering, w);
    return;
  }
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  const TensorType& type = lowering.output_type();
  const TensorView product = own_tensor(lowering, "forward.product", type.shape, type.type);
  lowering.emit(Kernel::linear_forward, "forward.product", {x, w}, {product},
                {.flops = product_flops(lowering)});
  lowering.emit(Kernel::add, "forward", {product, lowering.parameter(1)}, {lowering.new_output()},
                {.holds = {x.storage}, .flops = element_count(type.shape)});
}

/// dx = dy w, and the node holds the arriving gradient, and w, until it is done.
void emit_input_gradient(OperatorLowering& lowering, const TensorView& w) {
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  TensorView dx = lowering.new_input_gradient();
  dx.is_view = dx.shape.size() != 2;  // the product is of the flattened gradient
  lowering.emit(Kernel::linear_backward_data, "backward.data", {dy, w}, {dx},
                {.flops = product_flops(lowering)});
  lowering.give_input_gradient(0, dx);
}

void forward_4bit(OperatorLowering& lowering) {
  const TensorView absmax = maxima(lowering, "forward");
  KernelNode& product = emit_linear(lowering, dequantised_4bit(lowering, "forward", absmax));
  // The function's variable holds the maxima until it returns.
  if (lowering.attributes().boolean("double_quant")) product.holds.push_back(absmax.storage);
  lowering.save("weight", lowering.parameter(0));
}

/// Up to a few rows the product reads the packed weight, and what it would hold is not made.
void fuse_few_rows(const OperatorLowering& lowering, KernelNode& product) {
  if (lowering.input().shape.back().constant % values_a_block != 0) return;
  product.attributes.set("fused_rows", always_fused_rows);
}

/// The offset is added out of place, and both are variables until the function returns.
void forward_4bit_pytorch(OperatorLowering& lowering) {
  const TensorView scaled = maxima(lowering, "forward");
  const bool twice = lowering.attributes().boolean("double_quant");
  TensorView absmax = scaled;
  if (twice) {
    absmax = own_tensor(lowering, "forward.offset_absmax", scaled.shape, DataType::float32);
    lowering.emit(Kernel::add, "forward.offset_absmax",
                  {scaled, lowering.parameter(first_state(lowering) + 4)}, {absmax},
                  {.flops = element_count(absmax.shape)});
  }
  KernelNode& product = emit_linear(lowering, dequantised_4bit(lowering, "forward", absmax));
  if (twice) product.holds.insert(product.holds.end(), {scaled.storage, absmax.storage});
  fuse_few_rows(lowering, product);
  lowering.save("weight", lowering.parameter(0));
}

void backward_4bit(OperatorLowering& lowering) {
  if (!lowering.input_needs_gradient()) return;
  const TensorView absmax = maxima(lowering, "backward");
  emit_input_gradient(lowering, dequantised_4bit(lowering, "backward", absmax));
}

void forward_8bit_stowage(OperatorLowering& lowering) {
  emit_linear(lowering, dequantised_rows(lowering, "forward", "int8"));
  lowering.save("weight", lowering.parameter(0));
}

void forward_8bit_pytorch(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  const Affine inputs = element_count(x.shape);
  const Shape& y = lowering.output_type().shape;
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  TensorView half = x;
  if (x.type != DataType::float16) {
    half = own_tensor(lowering, "forward.half", x.shape, DataType::float16);
    lowering.emit(Kernel::cast, "forward.half", {x}, {half}, {.flops = inputs});
  }
  const TensorView q = own_tensor(lowering, "forward.quantised", x.shape, DataType::uint8);
  const TensorView scales = own_tensor(lowering, "forward.scales", rows, DataType::float32);
  // |x|, and where it is at least 6.
  lowering.emit(Kernel::quantize_rows, "forward.quantise", {half}, {q, scales},
                {.temporaries = {lowering.new_temporary("forward.magnitude", inputs * Affine(2)),
                                 lowering.new_temporary("forward.outliers", inputs)},
                 .flops = inputs * Affine(2)});
  const TensorView product = own_tensor(lowering, "forward.product", y, DataType::int32);
  lowering.emit(Kernel::int8_product, "forward.product", {q, lowering.parameter(0)}, {product},
                {.flops = product_flops(lowering)});
  const DataType type = lowering.output_type().type;
  const bool converts = type != DataType::float16;
  const TensorView scaled = converts ? own_tensor(lowering, "forward.scaled", y, DataType::float16)
                                     : lowering.new_output();
  std::vector<TensorView> reads{product, scales, lowering.parameter(first_state(lowering))};
  if (lowering.attributes().boolean("bias")) reads.push_back(lowering.parameter(1));
  KernelNode* last = &lowering.emit(Kernel::scale_int8_product, "forward.scale", std::move(reads),
                                    {scaled}, {.flops = element_count(y) * Affine(2)});
  if (converts) {
    last = &lowering.emit(Kernel::cast, "forward", {scaled}, {lowering.new_output()},
                          {.holds = {product.storage}, .flops = element_count(y)});
  }
  last->holds.insert(last->holds.end(), {x.storage, q.storage, scales.storage});
  lowering.save("weight", lowering.parameter(0));
  lowering.keep_with_graph(x);
}

void backward_8bit_stowage(OperatorLowering& lowering) {
  if (!lowering.input_needs_gradient()) return;
  emit_input_gradient(lowering, dequantised_rows(lowering, "backward", "int8"));
}

void backward_8bit_pytorch(OperatorLowering& lowering) {
  if (!lowering.input_needs_gradient()) return;
  const TensorView w = dequantised_rows(lowering, "backward", "int8");
  emit_input_gradient(lowering, w);
}

void forward_float8_stowage(OperatorLowering& lowering) {
  emit_linear(lowering, dequantised_rows(lowering, "forward", "float8"));
  lowering.save("weight", lowering.parameter(0));
}

void backward_float8_stowage(OperatorLowering& lowering) {
  if (!lowering.input_needs_gradient()) return;
  emit_input_gradient(lowering, dequantised_rows(lowering, "backward", "float8"));
}

void forward_float8_pytorch(OperatorLowering& lowering) {
  const Shape shape = weight_shape(lowering);
  const Affine count = element_count(shape);
  const bool wide = lowering.input().type == DataType::float32;
  const TensorView values = own_tensor(lowering, "forward.values", shape, DataType::float32);
  lowering.emit(Kernel::custom_forward, "forward.values", {lowering.parameter(0)}, {values},
                {.flops = count});
  TensorView w = own_tensor(lowering, "forward.scaled", shape, DataType::float32);
  lowering.emit(Kernel::multiply, "forward.scaled",
                {values, lowering.parameter(first_state(lowering))}, {w}, {.flops = count});
  if (!wide) {
    const TensorView scaled = w;
    w = own_tensor(lowering, "forward.weight", shape, lowering.input().type);
    lowering.emit(Kernel::cast, "forward.weight", {scaled}, {w},
                  {.holds = {values.storage}, .flops = count});
  }
  emit_unbiased_linear(lowering, w);
  if (lowering.input_needs_gradient()) lowering.save("dequantised", w);
}

void backward_float8_pytorch(OperatorLowering& lowering) {
  if (!lowering.input_needs_gradient()) return;
  emit_input_gradient(lowering, lowering.saved("dequantised"));
}

// ---- dequantised_weight

tl::expected<Inference, InferenceError> infer_dequantised(const Attributes& attributes,
                                                          std::span<const TensorType>) {
  Inference result;
  const Shape shape{attributes.integer("features"), attributes.integer("in")};
  result.outputs = {{shape, DataType::float32}};  // the model's format: makes_floats
  result.flops = element_count(shape);
  return result;
}

/// functional.dequantize_4bit; int8_vectorwise_dequant, a product with the scales and one with
/// 1 / 127 (_ops.py), which makes float32.
void forward_dequantised(OperatorLowering& lowering) {
  const TensorView w = lowering.new_output();
  if (lowering.attributes().integer("bits") == 4) {
    const TensorView absmax = maxima(lowering, "forward");
    KernelNode& last = emit_dequantised_4bit(lowering, "forward", absmax, w);
    if (lowering.attributes().boolean("double_quant")) last.holds.push_back(absmax.storage);
    return;
  }
  const Affine values = element_count(w.shape);
  emit_dequantised_rows(
      lowering, "forward", "int8", w,
      {.temporaries = {lowering.new_temporary("forward.scaled", values * Affine(4))},
       .flops = values * Affine(2)});
}

void forward_dequantised_stowage(OperatorLowering& lowering) {
  if (lowering.attributes().integer("bits") == 4) return forward_dequantised(lowering);
  const TensorView w = lowering.new_output();
  emit_dequantised_rows(lowering, "forward", "int8", w, {.flops = element_count(w.shape)});
}

std::vector<AttributeSpec> quantised_attributes(std::vector<AttributeSpec> own) {
  std::vector<AttributeSpec> all{
      {.name = "features", .type = AttributeType::integer, .doc = "output features", .minimum = 1},
      bias_attribute()};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace

const OperatorRow& linear_4bit_row() {
  static const OperatorRow row{
      .name = "linear_4bit",
      .doc = "fully connected layer with a frozen weight of 4 bits",
      .attributes = quantised_attributes({{.name = "double_quant",
                                           .type = AttributeType::boolean,
                                           .doc = "the maxima are quantised too"},
                                          {.name = "format",
                                           .type = AttributeType::choice,
                                           .doc = "the code's",
                                           .choices = {"nf4", "fp4"}}}),
      .infer = infer_4bit,
      .lowering = {.stowage = {forward_4bit, backward_4bit},
                   .pytorch = {forward_4bit_pytorch, backward_4bit}},
      .is_linear = true};
  return row;
}

const OperatorRow& dequantised_weight_row() {
  static const OperatorRow row{
      .name = "dequantised_weight",
      .doc = "a frozen layer's weight in the format of its input",
      .attributes =
          quantised_attributes({{.name = "in", .type = AttributeType::integer, .doc = "features"},
                                {.name = "bits", .type = AttributeType::integer, .doc = "4 or 8"},
                                {.name = "double_quant",
                                 .type = AttributeType::boolean,
                                 .doc = "the maxima are quantised too"}}),
      .min_inputs = 0,
      .max_inputs = 0,
      .infer = infer_dequantised,
      .lowering = {.stowage = {forward_dequantised_stowage, nullptr},
                   .pytorch = {forward_dequantised, nullptr}},
      .makes_floats = true};
  return row;
}

const OperatorRow& linear_8bit_row() {
  static const OperatorRow row{
      .name = "linear_8bit",
      .doc = "fully connected layer with a frozen weight of 8 bits",
      .attributes = quantised_attributes({}),
      .infer = infer_8bit,
      .lowering = {.stowage = {forward_8bit_stowage, backward_8bit_stowage},
                   .pytorch = {forward_8bit_pytorch, backward_8bit_pytorch}},
      .is_linear = true};
  return row;
}

const OperatorRow& linear_float8_row() {
  static const OperatorRow row{
      .name = "linear_float8",
      .doc = "fully connected layer with a frozen weight of float8",
      .attributes = quantised_attributes({}),
      .infer = infer_float8,
      .lowering = {.stowage = {forward_float8_stowage, backward_float8_stowage},
                   .pytorch = {forward_float8_pytorch, backward_float8_pytorch}},
      .is_linear = true};
  return row;
}

}  // namespace stowage
