// Linear layers of packed weights (model/packed_layout.hpp), as the libraries run them.
//
// Forward: one kernel multiplies by the packed weight (Marlin, exllama, AWQ's gemm, tinygemm, the
// products in fp8), and no restored copy is held. Where inputs are quantised, as for fp8 in blocks
// by transformers' DeepGEMM path and by vLLM, a byte an input and a float32 scale for 128 of them
// are there beside it. GPTQ's 2 and 3 bits have no such kernel: the weight is restored in the
// input's format, then multiplied (GPTQModel, TorchLinear and TritonV2).
//
// Training: GPTQ and AWQ restore the weight in forward too, as GPTQModel's trainable kernel does
// (TritonV2, QuantLinearFunction), and save nothing but the packed weight. fp8 restores it in
// backward alone (transformers, FP8LinearFunction). torchao multiplies by the restored weight
// outside of an autograd function, so that it is saved.
//
// Backward: the weight in the input's format, and the product.
//
// Workspaces within the kernels are not counted (Marlin: some KiB a multiprocessor). Our own kernel
// set restores the whole weight and multiplies, in forward and in backward. No kernel of ours reads
// a packed weight, so that such a step is counted, and runs nowhere.
#include <fmt/format.h>

#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/catalogue/torchao_linear.hpp"
#include "estimator/model/packed_layout.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t inputs_a_scale = 128;

tl::expected<Inference, InferenceError> infer_packed(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (x.shape.empty()) return refuse("wants at least one axis, but its input is a scalar", {}, 0);
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  if (auto error = want_constant(x.shape.back(), "last axis")) return tl::unexpected(*error);
  const std::int64_t in = x.shape.back().constant, out = attributes.integer("features");
  const PackedLayout layout = layout_of(attributes);
  if (std::string reason = size_refusal(layout, out, in); !reason.empty()) {
    return refuse(fmt::format("{} stores no such layer: {}", to_string(layout.kind), reason), {},
                  0);
  }
  Inference result;
  Shape y = x.shape;
  y.back() = out;
  result.outputs = {{y, x.type}};
  const std::vector<PackedTensor> stored = packed_tensors(layout, out, in, x.type);
  result.parameters.push_back(
      {.name = stored.front().name, .shape = stored.front().shape, .type = stored.front().type});
  if (attributes.boolean("bias")) {
    result.parameters.push_back({.name = "bias", .shape = {out}, .type = x.type});
  }
  for (std::size_t i = 1; i < stored.size(); ++i) {
    result.parameters.push_back({.name = stored[i].name,
                                 .shape = stored[i].shape,
                                 .type = stored[i].type,
                                 .is_buffer = true});
  }
  result.flops = element_count(y) * Affine(2 * in);
  return result;
}

class PackedLowering {
 public:
  PackedLowering(OperatorLowering& lowering, KernelSet set)
      : lowering_(lowering),
        restores_(set == KernelSet::stowage),
        layout_(layout_of(lowering.attributes())),
        flops_(element_count(lowering.input().shape) * Affine(2) *
               Affine(lowering.attributes().integer("features"))) {}

  void forward() {
    if (!restores_ && !layout_.fused) return forward_torchao(lowering_, layout_);
    const bool trained = lowering_.training() && lowering_.input_needs_gradient();
    const bool packs = layout_.kind != PackedKind::scaled;
    if (restores_ || !has_fused_product(layout_) || (trained && packs)) {
      multiply(restored("forward", Kernel::custom_forward));
    } else {
      multiply_packed();
    }
    lowering_.save("weight", lowering_.parameter(0));
  }

  void backward() {
    if (!lowering_.input_needs_gradient()) return;
    const TensorView w = lowering_.has_saved("restored")
                             ? lowering_.saved("restored")
                             : restored("backward", Kernel::custom_backward);
    const TensorView dy = lowering_.contiguous(lowering_.output_gradient(), "grad.contiguous");
    TensorView dx = lowering_.new_input_gradient();
    dx.is_view = dx.shape.size() != 2;  // the product is of the flattened gradient
    lowering_.emit(Kernel::linear_backward_data, "backward.data", {dy, w}, {dx}, {.flops = flops_});
    lowering_.give_input_gradient(0, dx);
  }

 private:
  [[nodiscard]] bool has_bias() const { return lowering_.attributes().boolean("bias"); }

  /// The weight's values and tables.
  [[nodiscard]] std::vector<TensorView> stored() const {
    std::vector<TensorView> views;
    for (int i = 0; i < lowering_.parameter_count(); ++i) {
      if (i != 1 || !has_bias()) views.push_back(lowering_.parameter(i));
    }
    return views;
  }

  TensorView restored(std::string_view pass, Kernel kernel) {
    const Shape shape{lowering_.attributes().integer("features"), lowering_.input().shape.back()};
    TensorView w = lowering_.new_tensor(fmt::format("{}.weight", pass), shape,
                                        lowering_.input().type, StorageClass::activation);
    lowering_.emit(kernel, fmt::format("{}.restore", pass), stored(), {w},
                   {.flops = element_count(shape) * Affine(2)});
    return w;
  }

  void multiply(const TensorView& w) {
    const TensorView x = lowering_.contiguous(lowering_.input(), "input.contiguous");
    std::vector<TensorView> reads{x, w};
    if (has_bias()) reads.push_back(lowering_.parameter(1));
    lowering_.emit(Kernel::linear_forward, "forward", std::move(reads), {lowering_.new_output()},
                   {.flops = flops_});
  }

  void multiply_packed() {
    const TensorView x = lowering_.contiguous(lowering_.input(), "input.contiguous");
    std::vector<TensorView> reads{x};
    if (layout_.inputs) {
      Shape scales = x.shape;
      scales.back() = (x.shape.back().constant + inputs_a_scale - 1) / inputs_a_scale;
      const TensorView q = lowering_.new_tensor("forward.quantised", x.shape, DataType::uint8,
                                                StorageClass::activation);
      const TensorView s = lowering_.new_tensor("forward.scales", scales, DataType::float32,
                                                StorageClass::activation);
      lowering_.emit(Kernel::custom_forward, "forward.quantise", {x}, {q, s},
                     {.flops = element_count(x.shape) * Affine(2)});
      reads = {q, s};
    }
    const std::vector<TensorView> weight = stored();
    reads.insert(reads.end(), weight.begin(), weight.end());
    if (has_bias()) reads.push_back(lowering_.parameter(1));
    lowering_.emit(Kernel::custom_forward, "forward", std::move(reads), {lowering_.new_output()},
                   {.flops = flops_});
  }

  OperatorLowering& lowering_;
  bool restores_;  ///< always
  PackedLayout layout_;
  Affine flops_;
};

void forward_packed_stowage(OperatorLowering& lowering) {
  PackedLowering(lowering, KernelSet::stowage).forward();
}
void backward_packed_stowage(OperatorLowering& lowering) {
  PackedLowering(lowering, KernelSet::stowage).backward();
}
void forward_packed_pytorch(OperatorLowering& lowering) {
  PackedLowering(lowering, KernelSet::pytorch).forward();
}
void backward_packed_pytorch(OperatorLowering& lowering) {
  PackedLowering(lowering, KernelSet::pytorch).backward();
}

// ---- packed_parameter

tl::expected<Inference, InferenceError> infer_packed_parameter(const Attributes& attributes,
                                                               std::span<const TensorType>) {
  const std::int64_t layers = attributes.integer("layers"), out = attributes.integer("features"),
                     in = attributes.integer("in");
  const PackedLayout layout = layout_of(attributes);
  if (std::string reason = size_refusal(layout, out, in); !reason.empty()) {
    return refuse(fmt::format("{} stores no such layer: {}", to_string(layout.kind), reason), {},
                  0);
  }
  Inference result;
  result.outputs = {{attributes.dimensions("shape"), DataType::float32}};  // makes_floats
  // The tables' formats do not follow the model's: scales of its format have 16 bits here.
  for (const PackedTensor& tensor : packed_tensors(layout, out, in, DataType::float16)) {
    Shape shape{layers};
    for (const Affine& dimension : tensor.shape) shape.push_back(dimension);
    result.parameters.push_back({.name = tensor.name,
                                 .shape = std::move(shape),
                                 .type = tensor.type,
                                 .is_buffer = !result.parameters.empty()});
  }
  return result;
}

void forward_packed_parameter(OperatorLowering& lowering) {
  TensorView view = lowering.parameter(0);
  view.type = lowering.output_type().type;
  view.shape = lowering.output_type().shape;
  view.strides = Shape(view.shape.size(), 0);
  view.is_view = true;
  lowering.set_output(0, std::move(view));
}

void forward_packed_parameter_stowage(OperatorLowering& lowering) {
  std::vector<TensorView> reads;
  reads.reserve(static_cast<std::size_t>(lowering.parameter_count()));
  for (int i = 0; i < lowering.parameter_count(); ++i) reads.push_back(lowering.parameter(i));
  const TensorView w = lowering.new_output();
  lowering.emit(Kernel::custom_forward, "restore", std::move(reads), {w},
                {.flops = element_count(w.shape) * Affine(2)});
}

std::vector<AttributeSpec> layout_attributes() {
  using enum AttributeType;
  return {{.name = "layout", .type = text, .doc = "of the weight"},
          {.name = "bits", .type = integer, .doc = "of a value"},
          {.name = "block", .type = integers, .doc = "values that share a scale", .length = 2},
          {.name = "scale_name", .type = text, .doc = "the library's name for the scales"},
          {.name = "scale_type", .type = text, .doc = "the scales' format"},
          {.name = "zero_points", .type = boolean, .doc = "has zero points"},
          {.name = "scalars", .type = integer, .doc = "further numbers"},
          {.name = "quantised_inputs", .type = boolean, .doc = "inputs are quantised"},
          {.name = "torchao", .type = text, .doc = "what a byte of torchao's layouts holds"},
          {.name = "fused", .type = boolean, .doc = "the product is one kernel"},
          {.name = "input_zero_points", .type = boolean, .doc = "inputs have zero points"}};
}

std::vector<AttributeSpec> with_layout(std::vector<AttributeSpec> own) {
  const std::vector<AttributeSpec> layout = layout_attributes();
  own.insert(own.end(), layout.begin(), layout.end());
  return own;
}

}  // namespace

const OperatorRow& linear_packed_row() {
  using enum AttributeType;
  static const OperatorRow row{
      .name = "linear_packed",
      .doc = "fully connected layer with a frozen weight of packed values",
      .attributes = with_layout(
          {{.name = "features", .type = integer, .doc = "output features", .minimum = 1},
           {.name = "bias", .type = boolean, .doc = "has a bias"}}),
      .infer = infer_packed,
      .lowering = {.stowage = {forward_packed_stowage, backward_packed_stowage},
                   .pytorch = {forward_packed_pytorch, backward_packed_pytorch}},
      .is_linear = true};
  return row;
}

const OperatorRow& packed_parameter_row() {
  using enum AttributeType;
  static const OperatorRow row{
      .name = "packed_parameter",
      .doc = "frozen weights of packed values",
      .attributes = with_layout({{.name = "shape", .type = dimensions, .doc = "before packing"},
                                 {.name = "layers", .type = integer, .doc = "number of weights"},
                                 {.name = "features", .type = integer, .doc = "of each"},
                                 {.name = "in", .type = integer, .doc = "of each"}}),
      .min_inputs = 0,
      .max_inputs = 0,
      .infer = infer_packed_parameter,
      .lowering = {.stowage = {forward_packed_parameter_stowage, nullptr},
                   .pytorch = {forward_packed_parameter, nullptr}},
      .makes_floats = true};
  return row;
}

}  // namespace stowage
