// Elements by index: index_select, index (x[:, i], x[i, j]) and gather, and what adds to the
// elements that indices name, index_add and scatter_add, or takes their place, scatter.
//
// Autograd keeps the indices (and gather its input, though only its sizes are asked for); the
// gradient goes into zeros of the input's size, in place (tests/reference/indexing_saved.py).
#include <fmt/format.h>

#include <optional>

#include "estimator/catalogue/axis_attribute.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"

namespace stowage {

namespace {

std::optional<InferenceError> want_indices(const TensorType& indices, int input) {
  if (indices.type == DataType::int64) return std::nullopt;
  return InferenceError{
      .message = fmt::format("wants int64 indices, but they are {}", to_string(indices.type)),
      .input = input,
      .hint = "give the input `dtype: int64`, or `cast` it"};
}

// index_select and index.

tl::expected<Inference, InferenceError> infer_taken(const Attributes& attributes,
                                                    std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto axis = axis_attribute(attributes, x.shape);
  if (!axis) return tl::unexpected(axis.error());
  const std::size_t named = inputs.size() - 1;
  if (*axis + named > x.shape.size()) {
    return refuse(fmt::format("{} indices from axis {} on are more than {} has axes", named, *axis,
                              to_string(x.shape)),
                  "axis", 0);
  }
  Shape together;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const int input = static_cast<int>(i);
    if (auto error = want_indices(inputs[i], input)) return tl::unexpected(*error);
    const Affine& length = x.shape[*axis + i - 1];
    if (auto error = want_constant(length, "indexed axis")) return tl::unexpected(*error);
    const auto shape = broadcast(together, inputs[i].shape);
    if (!shape) {
      return refuse(fmt::format("the indices {} and {} do not go together", to_string(together),
                                to_string(inputs[i].shape)),
                    {}, input);
    }
    together = *shape;
  }
  Shape y(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  y.insert(y.end(), together.begin(), together.end());
  y.insert(y.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(*axis + named), x.shape.end());
  Inference result;
  result.outputs = {{std::move(y), x.type}};
  return result;
}

tl::expected<Inference, InferenceError> infer_index_select(const Attributes& attributes,
                                                           std::span<const TensorType> inputs) {
  if (inputs[1].shape.size() > 1) {
    return refuse(fmt::format("wants a list of indices, but it is {}", to_string(inputs[1].shape)),
                  {}, 1, "`index` takes indices of any shape");
  }
  auto result = infer_taken(attributes, inputs);
  if (!result || !inputs[1].shape.empty()) return result;
  const auto axis = axis_attribute(attributes, inputs[0].shape);  // one index keeps the axis
  Shape& y = result->outputs[0].shape;
  y.insert(y.begin() + static_cast<std::ptrdiff_t>(*axis), 1);
  return result;
}

std::string index_role(int i) { return fmt::format("indices{}", i); }

void forward_taken(OperatorLowering& lowering) {
  std::vector<TensorView> reads{lowering.input()};
  for (int i = 1; i < lowering.input_count(); ++i) {
    reads.push_back(lowering.input(i));
    lowering.save(index_role(i), lowering.input(i));
  }
  lowering.emit(Kernel::take_forward, "forward", reads, {lowering.new_output()},
                {.attributes = axis_from_zero(lowering)});
}

void emit_taken_backward(OperatorLowering& lowering, std::vector<StorageId> temporaries) {
  const TensorView dy = lowering.output_gradient(), dx = lowering.new_input_gradient();
  std::vector<TensorView> reads;
  for (int i = 1; i < lowering.input_count(); ++i) {
    reads.push_back(lowering.saved(index_role(i)));
  }
  reads.push_back(dy);
  lowering.emit(Kernel::take_backward, "backward", reads, {dx},
                {.attributes = axis_from_zero(lowering),
                 .temporaries = std::move(temporaries),
                 .flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

void backward_taken(OperatorLowering& lowering) { emit_taken_backward(lowering, {}); }

void backward_index_pytorch(OperatorLowering& lowering) {
  const Shape& x = lowering.input(0).shape;
  Shape together;
  for (int i = 1; i < lowering.input_count(); ++i) {
    together = *broadcast(together, lowering.input(i).shape);
  }
  const std::size_t end = *axis_attribute(lowering.attributes(), x) +
                          static_cast<std::size_t>(lowering.input_count() - 1);
  const Shape named(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(end));
  const Affine bytes =
      index_put_scratch(element_count(together), element_count(named), lowering.output_gradient());
  emit_taken_backward(
      lowering,
      {lowering.new_tensor("sorted_indices", {bytes}, DataType::uint8, StorageClass::workspace)
           .storage});
}

// gather.

std::optional<InferenceError> check_elements(const TensorType& x, const TensorType& indices,
                                             std::size_t axis) {
  if (auto error = want_indices(indices, 1)) return error;
  bool fits = x.shape.size() == indices.shape.size();
  for (std::size_t i = 0; fits && i < x.shape.size(); ++i) {
    const Affine &whole = x.shape[i], &named = indices.shape[i];
    fits = i == axis || (named.constant <= whole.constant && named.slope <= whole.slope);
  }
  if (fits) return want_constant(x.shape[axis], "indexed axis");
  return InferenceError{.message = fmt::format("the indices {} do not go with {} along axis {}",
                                               to_string(indices.shape), to_string(x.shape), axis),
                        .input = 1};
}

tl::expected<Inference, InferenceError> infer_gather(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const auto axis = axis_attribute(attributes, inputs[0].shape);
  if (!axis) return tl::unexpected(axis.error());
  if (auto error = check_elements(inputs[0], inputs[1], *axis)) return tl::unexpected(*error);
  Inference result;
  result.outputs = {{inputs[1].shape, inputs[0].type}};
  return result;
}

void emit_gather(OperatorLowering& lowering) {
  lowering.emit(Kernel::gather_forward, "forward", {lowering.input(0), lowering.input(1)},
                {lowering.new_output()}, {.attributes = axis_from_zero(lowering)});
  lowering.save("indices", lowering.input(1));
}

void forward_gather_pytorch(OperatorLowering& lowering) {
  emit_gather(lowering);
  lowering.save("self", lowering.input(0));
}

void backward_gather(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient(), dx = lowering.new_input_gradient();
  lowering.emit(Kernel::gather_backward, "backward", {lowering.saved("indices"), dy}, {dx},
                {.attributes = axis_from_zero(lowering), .flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

// index_add and scatter_add.

bool adds_rows(const OperatorLowering& lowering) { return lowering.op().row->name == "index_add"; }

tl::expected<Inference, InferenceError> added_to(std::span<const TensorType> inputs) {
  if (inputs[2].type != inputs[0].type) {
    return refuse(fmt::format("its inputs are {} and {}", to_string(inputs[0].type),
                              to_string(inputs[2].type)),
                  {}, 2);
  }
  if (auto error = want_floating(inputs[0])) return tl::unexpected(*error);
  Inference result;
  result.outputs = {inputs[0]};
  result.flops = element_count(inputs[2].shape);
  return result;
}

tl::expected<Inference, InferenceError> infer_index_add(const Attributes& attributes,
                                                        std::span<const TensorType> inputs) {
  const auto axis = axis_attribute(attributes, inputs[0].shape);
  if (!axis) return tl::unexpected(axis.error());
  if (inputs[1].shape.size() != 1) {
    return refuse(fmt::format("wants a list of indices, but it is {}", to_string(inputs[1].shape)),
                  {}, 1);
  }
  const auto taken = infer_taken(attributes, inputs.first(2));
  if (!taken) return tl::unexpected(taken.error());
  if (taken->outputs[0].shape != inputs[2].shape) {
    return refuse(fmt::format("the source is {} where {} is needed", to_string(inputs[2].shape),
                              to_string(taken->outputs[0].shape)),
                  {}, 2);
  }
  return added_to(inputs);
}

tl::expected<Inference, InferenceError> infer_scatter_add(const Attributes& attributes,
                                                          std::span<const TensorType> inputs) {
  const auto axis = axis_attribute(attributes, inputs[0].shape);
  if (!axis) return tl::unexpected(axis.error());
  if (auto error = check_elements(inputs[0], inputs[1], *axis)) return tl::unexpected(*error);
  if (inputs[1].shape != inputs[2].shape) {
    return refuse(fmt::format("the source is {} where {} is needed", to_string(inputs[2].shape),
                              to_string(inputs[1].shape)),
                  {}, 2);
  }
  return added_to(inputs);
}

// scatter, of a source or of a number.

tl::expected<Inference, InferenceError> infer_scatter(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  if (inputs.size() > 2) return infer_scatter_add(attributes, inputs);
  const auto axis = axis_attribute(attributes, inputs[0].shape);
  if (!axis) return tl::unexpected(axis.error());
  if (auto error = check_elements(inputs[0], inputs[1], *axis)) return tl::unexpected(*error);
  if (auto error = want_floating(inputs[0])) return tl::unexpected(*error);
  Inference result;
  result.outputs = {inputs[0]};
  return result;
}

Attributes replacement(const OperatorLowering& lowering) {
  Attributes attributes = axis_from_zero(lowering);
  attributes.set("replace", true);
  return attributes;
}

/// The kernel's reads: `base`, the indices, and the value to put there. For our kernel it is a
/// tensor; PyTorch's kernel takes a number, so `base` stands in for it.
using ScatteredReads = std::vector<TensorView> (*)(OperatorLowering& lowering,
                                                   const std::string& suffix,
                                                   const TensorView& base,
                                                   const TensorView& indices, double value);
std::vector<TensorView> with_number_as_tensor(OperatorLowering& lowering, const std::string& suffix,
                                              const TensorView& base, const TensorView& indices,
                                              double value) {
  const TensorView made =
      lowering.new_tensor(suffix, indices.shape, base.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("value", value);
  lowering.emit(Kernel::fill, suffix, {}, {made}, {.attributes = std::move(attributes)});
  return {base, indices, made};
}
std::vector<TensorView> with_number_as_argument(OperatorLowering&, const std::string&,
                                                const TensorView& base, const TensorView& indices,
                                                double) {
  return {base, indices, base};
}

template <ScatteredReads with_number>
void forward_scatter(OperatorLowering& lowering) {
  const TensorView &x = lowering.input(0), &indices = lowering.input(1);
  std::vector<TensorView> reads =
      lowering.input_count() > 2
          ? std::vector{x, indices, lowering.input(2)}
          : with_number(lowering, "number", x, indices, lowering.attributes().real("value"));
  lowering.emit(Kernel::scatter_add, "forward", std::move(reads), {lowering.new_output()},
                {.attributes = replacement(lowering)});
  lowering.save("indices", indices);
}

/// The base's gradient has zeros at the written elements; the source gets the gradient of those.
template <ScatteredReads with_number>
void backward_scatter(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient(), indices = lowering.saved("indices");
  std::optional<TensorView> base, source;
  if (lowering.input_needs_gradient(0)) {
    base = lowering.new_input_gradient(0);
    lowering.emit(Kernel::scatter_add, "backward",
                  with_number(lowering, "backward.zeros", dy, indices, 0.0), {*base},
                  {.attributes = replacement(lowering)});
  }
  if (lowering.input_count() > 2 && lowering.input_needs_gradient(2)) {
    source = lowering.new_input_gradient(2);
    lowering.emit(Kernel::gather_forward, "backward.source", {dy, indices}, {*source},
                  {.attributes = axis_from_zero(lowering)});
  }
  if (base) lowering.give_input_gradient(0, *base);
  if (source) lowering.give_input_gradient(2, *source);
}

void emit_addition(OperatorLowering& lowering) {
  lowering.emit(
      adds_rows(lowering) ? Kernel::index_add : Kernel::scatter_add, "forward",
      {lowering.input(0), lowering.input(1), lowering.input(2)}, {lowering.new_output()},
      {.attributes = axis_from_zero(lowering), .flops = element_count(lowering.input(2).shape)});
  if (lowering.input_needs_gradient(2)) lowering.save("indices", lowering.input(1));
}

void forward_addition_pytorch(OperatorLowering& lowering) {
  emit_addition(lowering);
  if (adds_rows(lowering) && lowering.input_needs_gradient(2)) {
    lowering.save("source", lowering.input(2));  // for its sizes
  }
}

void backward_addition(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  if (lowering.input_needs_gradient(2)) {
    const TensorView source = lowering.new_input_gradient(2);
    lowering.emit(adds_rows(lowering) ? Kernel::take_forward : Kernel::gather_forward,
                  "backward.source", {dy, lowering.saved("indices")}, {source},
                  {.attributes = axis_from_zero(lowering)});
    if (lowering.input_needs_gradient(0)) lowering.give_input_gradient(0, dy);
    return lowering.give_input_gradient(2, source);
  }
  if (lowering.input_needs_gradient(0)) lowering.give_input_gradient(0, dy);
}

OperatorRow addition_by_index_row(std::string_view name, std::string_view doc, InferRule rule) {
  return {
      .name = name,
      .doc = doc,
      .attributes = {axis_spec({}, "the axis that indices name; negative counts from the last")},
      .min_inputs = 3,
      .max_inputs = 3,
      .infer = rule,
      .lowering = {.stowage = {emit_addition, backward_addition},
                   .pytorch = {forward_addition_pytorch, backward_addition}}};
}

}  // namespace

OperatorRow rows::index_select() {
  return {.name = "index_select",
          .doc = "parts of a tensor (first input) along an axis, by a list of indices (second)",
          .attributes = {axis_spec({}, "which; negative counts from the last")},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_index_select,
          .lowering = {.stowage = {forward_taken, backward_taken}}};
}

OperatorRow rows::index() {
  return {
      .name = "index",
      .doc =
          "elements of a tensor (first input) by indices of any shape, one an axis: x[:, i], "
          "x[i, j]",
      .attributes = {axis_spec(0, "the first of the indexed axes; negative counts from the last")},
      .min_inputs = 2,
      .max_inputs = 5,
      .infer = infer_taken,
      .lowering = {.stowage = {forward_taken, backward_taken},
                   .pytorch = {forward_taken, backward_index_pytorch}}};
}

OperatorRow rows::gather() {
  return {.name = "gather",
          .doc = "elements of a tensor (first input) along an axis, an index (second) for each",
          .attributes = {axis_spec({}, "which; negative counts from the last")},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_gather,
          .lowering = {.stowage = {emit_gather, backward_gather},
                       .pytorch = {forward_gather_pytorch, backward_gather}}};
}

OperatorRow rows::index_add() {
  return addition_by_index_row("index_add",
                               "a tensor with parts (third input) added where indices (second) say",
                               infer_index_add);
}
OperatorRow rows::scatter() {
  return {.name = "scatter",
          .doc =
              "a tensor with elements (third input), or a number, in the places that indices "
              "(second) say",
          .attributes = {axis_spec({}, "the axis that indices name; negative counts from the last"),
                         {.name = "value",
                          .type = AttributeType::real,
                          .doc = "the number, where there is no third input",
                          .default_value = 0.0}},
          .min_inputs = 2,
          .max_inputs = 3,
          .infer = infer_scatter,
          .lowering = {.stowage = {forward_scatter<with_number_as_tensor>,
                                   backward_scatter<with_number_as_tensor>},
                       .pytorch = {forward_scatter<with_number_as_argument>,
                                   backward_scatter<with_number_as_argument>}}};
}
OperatorRow rows::scatter_add() {
  return addition_by_index_row(
      "scatter_add", "a tensor with elements (third input) added where their indices (second) say",
      infer_scatter_add);
}

}  // namespace stowage
