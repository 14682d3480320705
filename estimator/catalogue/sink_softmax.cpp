// sink_softmax: the softmax of attention scores with a learned score more a head, the sink, whose
// weight is left out afterwards (gpt-oss).
//
// PyTorch's lowering is transformers' (models/gpt_oss/modeling_gpt_oss.py, 5.24,
// eager_attention_forward): the sinks are joined to the scores as one column, the largest of each
// row is subtracted, and the result is a view of the softmax without that column. Our executor's
// softmax subtracts the largest itself, and the result is a copy.
#include <fmt/format.h>

#include "estimator/catalogue/held_weights.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t sink_softmax_flops = 7;  // an element: softmax, the largest, a difference
constexpr std::size_t sink_axes = 4, sink_key_axis = 3;

tl::expected<Inference, InferenceError> infer_sink_softmax(const Attributes&,
                                                           std::span<const TensorType> inputs) {
  const TensorType &x = inputs[0], &sinks = inputs[1];
  for (int i = 0; i < 2; ++i) {
    if (auto error = want_floating(inputs[static_cast<std::size_t>(i)], i)) {
      return tl::unexpected(*error);
    }
  }
  if (x.shape.size() != sink_axes) {
    return refuse(fmt::format("wants scores [batch, heads, queries, keys], but its input has "
                              "shape {}",
                              to_string(x.shape)),
                  {}, 0);
  }
  if (auto error = want_constant(x.shape[sink_key_axis], "last axis")) {
    return tl::unexpected(*error);
  }
  if (sinks.shape != Shape{x.shape[1]}) {
    return refuse(fmt::format("wants a number for each of {} heads, but its input has shape {}",
                              x.shape[1].to_string(), to_string(sinks.shape)),
                  {}, 1);
  }
  Inference result;
  result.outputs = {{x.shape, promoted(x.type, sinks.type)}};
  result.flops = element_count(x.shape) * Affine(sink_softmax_flops);
  return result;
}

Attributes sink_axis_attributes() {
  Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(sink_key_axis));
  return attributes;
}

Attributes sink_place(std::int64_t start) {
  Attributes attributes = sink_axis_attributes();
  attributes.set("start", start);
  return attributes;
}

Attributes sink_softmax_attributes() {
  Attributes attributes = sink_axis_attributes();
  attributes.set("causal", false);
  return attributes;
}

Attributes difference_of(std::string_view operation) {
  Attributes attributes = sink_axis_attributes();
  attributes.set("operation", std::string(operation));
  return attributes;
}

/// The call's sizes: scores with the sinks' column, that column, and the number of keys.
struct SinkShapes {
  Shape joined, column;
  Affine keys, elements;
};

SinkShapes sink_shapes(const Shape& scores) {
  SinkShapes shapes{scores, scores, scores[sink_key_axis], {}};
  shapes.joined[sink_key_axis] = shapes.keys + Affine(1);
  shapes.column[sink_key_axis] = 1;
  shapes.elements = element_count(shapes.joined);
  return shapes;
}

/// The sinks [heads] as [1, heads, 1, 1].
TensorView by_head(const TensorView& sinks) {
  TensorView view = sinks;
  const Affine stride = sinks.strides[0];
  view.shape = {1, sinks.shape[0], 1, 1};
  view.strides = {sinks.shape[0] * stride, stride, 1, 1};
  return view;
}

// The function's variables hold the scores until the softmax is made.
void forward_sink_softmax_pytorch(OperatorLowering& lowering) {
  const TensorView x = lowering.input(0);
  const SinkShapes n = sink_shapes(x.shape);
  const DataType type = lowering.output_type().type;
  const auto made = [&](std::string_view name, const Shape& shape, DataType format) {
    return lowering.new_tensor(name, shape, format, StorageClass::activation);
  };
  TensorView column = by_head(lowering.input(1));
  column.shape = n.column;
  column.strides = {0, column.strides[1], 0, 1};
  column.is_view = true;
  const std::vector<StorageId> held{x.storage};
  const TensorView joined = made("joined", n.joined, type);
  lowering.emit(Kernel::concatenate, "joined", {x, column}, {joined},
                {.attributes = sink_place(0)});
  const TensorView largest = made("largest", n.column, type);
  const TensorView places = made("places", n.column, DataType::int64);
  lowering.emit(Kernel::extreme_place, "largest", {joined}, {places, largest},
                {.attributes = difference_of("maximum"), .holds = held, .flops = n.elements});
  lowering.save("places", places);
  const TensorView shifted = made("shifted", n.joined, type);
  lowering.emit(Kernel::subtract, "shifted", {joined, largest}, {shifted},
                {.holds = held, .flops = n.elements});
  const TensorView weights = made("weights", n.joined, type);
  lowering.emit(Kernel::softmax_forward, "forward", {shifted}, {weights},
                {.attributes = sink_softmax_attributes(),
                 .holds = held,
                 .flops = n.elements * Affine(sink_softmax_flops - 2)});
  lowering.save("result", weights);
  lowering.set_output(0, sliced(weights, sink_key_axis, 0, n.keys));
}

// Autograd's nodes in reverse order: the view, the softmax, the difference, the largest, the join.
// The gradient of the joined scores gets both parts in place.
void backward_sink_softmax_pytorch(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const TensorView weights = lowering.saved("result");
  const SinkShapes n = sink_shapes(lowering.input(0).shape);
  const auto made = [&](std::string_view name, const Shape& shape) {
    return lowering.new_tensor(name, shape, weights.type, StorageClass::activation_gradient);
  };
  const TensorView dy = lowering.cast(lowering.output_gradient(), weights.type, "grad.cast");
  const TensorView d_weights = made("grad_weights", n.joined);
  lowering.emit(Kernel::pad, "backward.weights", {dy}, {d_weights});
  const TensorView d_joined = made("grad_joined", n.joined);
  lowering.emit(Kernel::softmax_backward, "backward", {weights, d_weights}, {d_joined},
                {.attributes = sink_softmax_attributes(),
                 .temporaries = {new_softmax_product(lowering, weights)},
                 .flops = n.elements * Affine(sink_softmax_flops - 2)});
  const TensorView negative = made("grad_negative", n.joined);
  Attributes factor;
  factor.set("factor", -1.0);
  factor.set("offset", 0.0);
  lowering.emit(Kernel::scale, "backward.negative", {d_joined}, {negative},
                {.attributes = factor, .flops = n.elements});
  const TensorView d_largest = made("grad_largest", n.column);
  lowering.emit(Kernel::sum_to_shape, "backward.sum", {negative}, {d_largest},
                {.holds = {d_joined.storage}, .flops = n.elements});
  const TensorView scattered = made("grad_scattered", n.joined);
  Attributes zero;
  zero.set("value", 0.0);
  lowering.emit(Kernel::fill, "backward.zeros", {}, {scattered},
                {.attributes = zero, .holds = {d_joined.storage, d_largest.storage}});
  const TensorView places = lowering.saved("places");
  lowering.emit(Kernel::scatter_add, "backward.scattered", {scattered, places, d_largest},
                {scattered}, {.attributes = sink_axis_attributes(), .holds = {d_joined.storage}});
  lowering.emit(Kernel::accumulate, "backward.both", {d_joined, scattered}, {d_joined},
                {.flops = n.elements});
  if (lowering.input_needs_gradient(1)) {
    const TensorView sinks = lowering.input(1);
    const TensorView sum = made("grad_sinks", sinks.shape);
    lowering.emit(Kernel::sum_to_shape, "backward.sinks",
                  {sliced(d_joined, sink_key_axis, n.keys, 1)}, {by_head(sum)},
                  {.holds = {d_joined.storage}});
    lowering.give_input_gradient(1, sum);
    lowering.deliver_gradients();
  }
  if (lowering.input_needs_gradient(0)) {
    lowering.give_input_gradient(0, sliced(d_joined, sink_key_axis, 0, n.keys));
  }
}

void forward_sink_softmax_stowage(OperatorLowering& lowering) {
  const DataType type = lowering.output_type().type;
  const TensorView x = lowering.cast(lowering.input(0), type, "input0.cast");
  const TensorView sinks = lowering.cast(lowering.input(1), type, "input1.cast");
  const SinkShapes n = sink_shapes(x.shape);
  const auto made = [&](std::string_view name, const Shape& shape) {
    return lowering.new_tensor(name, shape, type, StorageClass::activation);
  };
  const TensorView column = made("column", n.column);
  Attributes factor;
  factor.set("factor", 1.0);
  lowering.emit(Kernel::expand, "column", {by_head(sinks)}, {column}, {.attributes = factor});
  const TensorView joined = made("joined", n.joined);
  lowering.emit(Kernel::concatenate, "joined", {x, column}, {joined},
                {.attributes = sink_place(0)});
  const TensorView weights = made("weights", n.joined);
  lowering.emit(
      Kernel::softmax_forward, "softmax", {joined}, {weights},
      {.attributes = sink_softmax_attributes(), .flops = n.elements * Affine(sink_softmax_flops)});
  lowering.emit(Kernel::slice, "forward", {weights}, {lowering.new_output()},
                {.attributes = sink_place(0)});
  lowering.save("result", weights);
}

/// Zeros behind the last axis, for the sinks' column.
Attributes one_column_more() {
  Attributes attributes;
  attributes.set("before", std::vector<std::int64_t>(sink_axes, 0));
  attributes.set("after", std::vector<std::int64_t>{0, 0, 0, 1});
  attributes.set("mode", std::string("constant"));
  attributes.set("value", 0.0);
  return attributes;
}

void backward_sink_softmax_stowage(OperatorLowering& lowering) {
  const TensorView weights = lowering.saved("result");
  const SinkShapes n = sink_shapes(lowering.input(0).shape);
  const auto made = [&](std::string_view name, const Shape& shape) {
    return lowering.new_tensor(name, shape, weights.type, StorageClass::activation_gradient);
  };
  const TensorView d_weights = made("grad_weights", n.joined);
  lowering.emit(Kernel::pad, "backward.weights", {lowering.output_gradient()}, {d_weights},
                {.attributes = one_column_more()});
  const TensorView d_joined = made("grad_joined", n.joined);
  lowering.emit(
      Kernel::softmax_backward, "backward", {weights, d_weights}, {d_joined},
      {.attributes = sink_softmax_attributes(), .flops = n.elements * Affine(sink_softmax_flops)});
  if (lowering.input_needs_gradient(0)) {
    const TensorView dx = made("grad_scores", lowering.input(0).shape);
    lowering.emit(Kernel::slice, "backward.scores", {d_joined}, {dx},
                  {.attributes = sink_place(0)});
    lowering.give_input_gradient(0, dx);
  }
  if (!lowering.input_needs_gradient(1)) return;
  const TensorView column = made("grad_column", n.column);
  lowering.emit(Kernel::slice, "backward.column", {d_joined}, {column},
                {.attributes = sink_place(n.keys.constant)});
  const TensorView sum = made("grad_sinks", lowering.input(1).shape);
  lowering.emit(Kernel::sum_to_shape, "backward.sinks", {column}, {by_head(sum)},
                {.flops = element_count(column.shape)});
  lowering.give_input_gradient(1, sum);
}

}  // namespace

OperatorRow rows::sink_softmax() {
  return {.name = "sink_softmax",
          .doc =
              "softmax of scores [batch, heads, queries, keys] along their keys and a learned "
              "score of each head, whose weight is left out; inputs: scores, sinks [heads]",
          .attributes = {held_attribute()},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_sink_softmax,
          .lowering = {.stowage = {forward_sink_softmax_stowage, backward_sink_softmax_stowage},
                       .pytorch = {forward_sink_softmax_pytorch, backward_sink_softmax_pytorch}}};
}

}  // namespace stowage
