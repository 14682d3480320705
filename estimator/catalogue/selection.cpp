// Comparisons and masks, and what they select: compare, logical, where and masked_fill. Only what
// is selected from has a gradient; autograd keeps the mask.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

tl::expected<Shape, InferenceError> common_shape(std::span<const TensorType> inputs) {
  Shape whole;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto shape = broadcast(whole, inputs[i].shape);
    if (!shape) {
      return refuse(fmt::format("the shapes {} and {} do not go together", to_string(whole),
                                to_string(inputs[i].shape)),
                    {}, static_cast<int>(i));
    }
    whole = *shape;
  }
  return whole;
}

std::optional<InferenceError> want_mask(const TensorType& mask, int input) {
  if (mask.type == DataType::boolean) return std::nullopt;
  return InferenceError{
      .message = fmt::format("wants a boolean mask, but it is {}", to_string(mask.type)),
      .input = input,
      .hint = "`compare` makes one, and `cast: {dtype: bool}`"};
}

/// Operands of one type, or floating-point ones that are promoted.
tl::expected<DataType, InferenceError> common_type(const TensorType& a, const TensorType& b,
                                                   int input) {
  if (a.type == b.type) return a.type;
  if (is_floating_point(a.type) && is_floating_point(b.type)) return promoted(a, b);
  return refuse(fmt::format("its inputs are {} and {}", to_string(a.type), to_string(b.type)), {},
                input);
}

// compare and logical.

tl::expected<Inference, InferenceError> infer_mask(std::span<const TensorType> inputs) {
  const auto shape = common_shape(inputs);
  if (!shape) return tl::unexpected(shape.error());
  Inference result;
  result.outputs = {{*shape, DataType::boolean}};
  result.flops = element_count(*shape);
  return result;
}

tl::expected<Inference, InferenceError> infer_comparison(const Attributes&,
                                                         std::span<const TensorType> inputs) {
  if (inputs.size() == 2) {
    const auto type = common_type(inputs[0], inputs[1], 1);
    if (!type) return tl::unexpected(type.error());
  }
  return infer_mask(inputs);
}

tl::expected<Inference, InferenceError> infer_logical(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (auto error = want_mask(inputs[i], static_cast<int>(i))) return tl::unexpected(*error);
  }
  const std::string& operation = attributes.text("operation");
  if ((operation == "not") != (inputs.size() == 1)) {
    return refuse(fmt::format("operation '{}' of {} inputs", operation, inputs.size()),
                  "operation");
  }
  return infer_mask(inputs);
}

template <Kernel kernel>
void forward_made_mask(OperatorLowering& lowering) {
  std::vector<TensorView> reads;
  reads.reserve(static_cast<std::size_t>(lowering.input_count()));
  for (int i = 0; i < lowering.input_count(); ++i) reads.push_back(lowering.input(i));
  const TensorView y = lowering.new_output();
  lowering.emit(kernel, "forward", reads, {y}, {.flops = element_count(y.shape)});
}

/// The kernel needs both operands in one type.
void forward_comparison_stowage(OperatorLowering& lowering) {
  std::vector<TensorView> reads{lowering.input(0)};
  if (lowering.input_count() > 1) {
    const TensorView a = lowering.input(0), b = lowering.input(1);
    const DataType type = promoted({a.shape, a.type}, {b.shape, b.type});
    const bool floats = is_floating_point(a.type);
    reads = {floats ? lowering.cast(a, type, "input0.cast") : a,
             floats ? lowering.cast(b, type, "input1.cast") : b};
  }
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::compare, "forward", reads, {y}, {.flops = element_count(y.shape)});
}

// where.

tl::expected<Inference, InferenceError> infer_where(const Attributes&,
                                                    std::span<const TensorType> inputs) {
  if (auto error = want_mask(inputs[0], 0)) return tl::unexpected(*error);
  const auto type = common_type(inputs[1], inputs[2], 2);
  if (!type) return tl::unexpected(type.error());
  const auto shape = common_shape(inputs);
  if (!shape) return tl::unexpected(shape.error());
  Inference result;
  result.outputs = {{*shape, *type}};
  result.flops = element_count(*shape);
  return result;
}

/// A tensor of one number, for kernels that take tensors.
TensorView number(OperatorLowering& lowering, std::string_view suffix, DataType type,
                  double value) {
  TensorView made = lowering.new_tensor(suffix, {}, type, StorageClass::activation);
  Attributes attributes;
  attributes.set("value", value);
  lowering.emit(Kernel::fill, suffix, {}, {made}, {.attributes = attributes});
  return made;
}

void emit_where(OperatorLowering& lowering, const TensorView& a, const TensorView& b) {
  const TensorView y = a.shape == lowering.output_type().shape ? new_output_like(lowering, a)
                                                               : lowering.new_output();
  lowering.emit(Kernel::select, "forward", {lowering.input(0), a, b}, {y},
                {.flops = element_count(y.shape)});
  lowering.save("condition", lowering.input(0));
}

void forward_where_pytorch(OperatorLowering& lowering) {
  emit_where(lowering, lowering.input(1), lowering.input(2));
}

void forward_where_stowage(OperatorLowering& lowering) {
  const DataType type = lowering.output_type().type;
  const TensorView a = lowering.cast(lowering.input(1), type, "input1.cast");
  emit_where(lowering, a, lowering.cast(lowering.input(2), type, "input2.cast"));
}

/// The gradient where the condition chose input `i`, and zeros elsewhere.
template <GiveGradient give>
void backward_where(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  std::array<std::optional<TensorView>, 3> gradients;
  for (const int i : {1, 2}) {
    if (!lowering.input_needs_gradient(i)) continue;
    const TensorView zero = number(lowering, fmt::format("backward.zero{}", i), dy.type, 0.0);
    TensorView& chosen = gradients[static_cast<std::size_t>(i)].emplace(
        ordered_like(lowering.new_tensor(fmt::format("grad_chosen{}", i), dy.shape, dy.type,
                                         StorageClass::activation_gradient),
                     dy));
    lowering.emit(Kernel::select, fmt::format("backward.chosen{}", i),
                  {lowering.saved("condition"), i == 1 ? dy : zero, i == 1 ? zero : dy}, {chosen},
                  {.flops = element_count(dy.shape)});
  }
  for (const int i : {1, 2}) {
    const auto& chosen = gradients[static_cast<std::size_t>(i)];
    if (chosen) give(lowering, i, *chosen);
  }
}

// masked_fill.

tl::expected<Inference, InferenceError> infer_masked_fill(const Attributes& attributes,
                                                          std::span<const TensorType> inputs) {
  if (auto error = want_mask(inputs[1], 1)) return tl::unexpected(*error);
  const auto shape = common_shape(inputs);
  if (!shape) return tl::unexpected(shape.error());
  if (*shape != inputs[0].shape) {
    return refuse(fmt::format("the mask {} does not broadcast to {}", to_string(inputs[1].shape),
                              to_string(inputs[0].shape)),
                  {}, 1);
  }
  const double value = attributes.real("value");
  if (!is_floating_point(inputs[0].type) && (value > infinite / 2 || value < -infinite / 2)) {
    return refuse(fmt::format("{} has no infinity", to_string(inputs[0].type)), "value", 0);
  }
  Inference result;
  result.outputs = {inputs[0]};
  result.flops = element_count(inputs[0].shape);
  return result;
}

/// The kernel reads the value from memory: PyTorch's has it as an argument.
using FilledReads = std::vector<TensorView> (*)(OperatorLowering& lowering, std::string_view suffix,
                                                const TensorView& x, const TensorView& mask,
                                                double value);

std::vector<TensorView> with_the_number(OperatorLowering& lowering, std::string_view suffix,
                                        const TensorView& x, const TensorView& mask, double value) {
  return {mask, number(lowering, fmt::format("{}.value", suffix), x.type, value), x};
}
std::vector<TensorView> mask_alone(OperatorLowering&, std::string_view, const TensorView& x,
                                   const TensorView& mask, double) {
  return {mask, x};
}

template <FilledReads reads>
void forward_masked_fill(OperatorLowering& lowering) {
  const TensorView x = lowering.input(0), mask = lowering.input(1);
  const std::vector<TensorView> read =
      reads(lowering, "forward", x, mask, lowering.attributes().real("value"));
  lowering.emit(Kernel::select, "forward", read, {new_output_like(lowering, x)},
                {.flops = element_count(x.shape)});
  lowering.save("mask", mask);
}

template <FilledReads reads>
void backward_masked_fill(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const std::vector<TensorView> read = reads(lowering, "backward", dy, lowering.saved("mask"), 0.0);
  const TensorView dx = new_input_gradient_like(lowering, dy);
  lowering.emit(Kernel::select, "backward", read, {dx}, {.flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

AttributeSpec number_attribute(std::string_view doc) {
  return {.name = "value",
          .type = AttributeType::real,
          .doc = doc,
          .default_value = 0.0,
          .minimum = -infinite,
          .maximum = infinite};
}

}  // namespace

OperatorRow rows::compare() {
  return {.name = "compare",
          .doc = "a boolean mask: where one tensor's elements compare to another's, or to a number",
          .attributes = {{.name = "operation",
                          .type = AttributeType::choice,
                          .doc = "equal, not equal, less, less or equal, greater, greater or equal",
                          .choices = {"eq", "ne", "lt", "le", "gt", "ge"}},
                         number_attribute("what a single input is compared to")},
          .max_inputs = 2,
          .infer = infer_comparison,
          // Its result's format is no format to promote its inputs to: the rules see to theirs.
          .lowering = {.stowage = {forward_comparison_stowage, nullptr, true},
                       .pytorch = {forward_made_mask<Kernel::compare>, nullptr, true}}};
}

OperatorRow rows::logical() {
  return {.name = "logical",
          .doc = "a boolean mask of one or two",
          .attributes = {{.name = "operation",
                          .type = AttributeType::choice,
                          .doc = "of two masks, broadcast; not: of one",
                          .choices = {"and", "or", "xor", "not"}}},
          .max_inputs = 2,
          .infer = infer_logical,
          .lowering = {.stowage = {forward_made_mask<Kernel::logical>, nullptr}}};
}

OperatorRow rows::where() {
  return {
      .name = "where",
      .doc = "by a boolean mask (first input) elements of one tensor (second) or another (third)",
      .min_inputs = 3,
      .max_inputs = 3,
      .infer = infer_where,
      .lowering = {.stowage = {forward_where_stowage, backward_where<give_broadcast_gradient>},
                   .pytorch = {forward_where_pytorch, backward_where<give_converted_gradient>}}};
}

OperatorRow rows::masked_fill() {
  return {
      .name = "masked_fill",
      .doc = "a tensor with a number where a boolean mask (second input) is true",
      .attributes = {number_attribute("the number")},
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = infer_masked_fill,
      .lowering = {
          .stowage = {forward_masked_fill<with_the_number>, backward_masked_fill<with_the_number>},
          .pytorch = {forward_masked_fill<mask_alone>, backward_masked_fill<mask_alone>}}};
}

}  // namespace stowage
