// The arguments that both lowerings of a recurrent network hand to their kernels.
#include <fmt/format.h>

#include "estimator/catalogue/dropout.hpp"
#include "estimator/catalogue/recurrent.hpp"

namespace stowage {

RecurrentNetwork network_of(const OperatorLowering& lowering) {
  return network_of(lowering.attributes(), lowering.input().shape);
}

Affine flops_of(const OperatorLowering& lowering, const RecurrentNetwork& n) {
  Affine products = 0;
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    const Shape shape = lowering.parameter(i).shape;
    if (shape.size() == 2) products = products + element_count(shape);
  }
  return n.sequence * n.batch * products * Affine(2);
}

Attributes cell_attributes(const OperatorLowering& lowering, const RecurrentNetwork& n) {
  Attributes attributes = dropout_attributes(lowering, lowering.attributes().real("dropout"));
  attributes.set("cell", n.cell);
  return attributes;
}

std::vector<TensorView> first_states(OperatorLowering& lowering, const RecurrentNetwork& n) {
  std::vector<TensorView> states;
  for (int i = 1; i < lowering.input_count(); ++i) states.push_back(lowering.input(i));
  if (!states.empty()) return states;
  const auto zeros = [&](std::string_view name, const Shape& shape) {
    states.push_back(
        lowering.new_tensor(name, shape, lowering.input().type, StorageClass::activation));
    Attributes value;
    value.set("value", 0.0);
    lowering.emit(Kernel::fill, name, {}, {states.back()}, {.attributes = value});
  };
  zeros("h0", n.hidden_state());
  if (n.has_cell_state()) zeros("c0", n.cell_state());
  return states;
}

std::vector<TensorView> last_states(OperatorLowering& lowering, const RecurrentNetwork& n) {
  const bool given = lowering.attributes().boolean("states");
  std::vector<TensorView> states;
  const auto add = [&](std::string_view name, const Shape& shape) {
    const int output = static_cast<int>(states.size()) + 1;
    states.push_back(
        given ? lowering.new_output(output)
              : lowering.new_tensor(name, shape, lowering.input().type, StorageClass::activation));
  };
  add("hn", n.hidden_state());
  if (n.has_cell_state()) add("cn", n.cell_state());
  return states;
}

void append_parameters(const OperatorLowering& lowering, std::vector<TensorView>& reads) {
  for (int i = 0; i < lowering.parameter_count(); ++i) reads.push_back(lowering.parameter(i));
}

TensorView zero_gradient(OperatorLowering& lowering, std::string_view name, const Shape& shape,
                         StorageClass unused_class) {
  const TensorView zeros = lowering.new_tensor(name, shape, lowering.input().type, unused_class);
  Attributes value;
  value.set("value", 0.0);
  lowering.emit(Kernel::fill, fmt::format("backward.{}", name), {}, {zeros}, {.attributes = value});
  return zeros;
}

namespace {

TensorView result_gradient(OperatorLowering& lowering, StorageClass unused_class) {
  if (lowering.has_output_gradient(0)) return lowering.output_gradient(0);
  return zero_gradient(lowering, "grad_output", lowering.output_type(0).shape, unused_class);
}

}  // namespace

std::vector<TensorView> backward_reads(OperatorLowering& lowering, const RecurrentNetwork& n,
                                       StorageClass unused_class) {
  std::vector<TensorView> reads{lowering.saved("input"), lowering.saved("h0")};
  if (n.has_cell_state()) reads.push_back(lowering.saved("c0"));
  append_parameters(lowering, reads);
  reads.push_back(lowering.saved("output"));
  reads.push_back(lowering.saved("reserve"));
  reads.push_back(result_gradient(lowering, unused_class));
  return reads;
}

std::vector<TensorView> backward_writes(OperatorLowering& lowering, const RecurrentNetwork& n,
                                        StorageClass unused_class) {
  std::vector<TensorView> writes{lowering.new_input_gradient(0)};
  const std::vector<Shape> shapes = n.has_cell_state()
                                        ? std::vector<Shape>{n.hidden_state(), n.cell_state()}
                                        : std::vector<Shape>{n.hidden_state()};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const int input = static_cast<int>(i) + 1;
    writes.push_back(input < lowering.input_count()
                         ? lowering.new_input_gradient(input)
                         : lowering.new_tensor(i == 0 ? "grad_h0" : "grad_c0", shapes[i],
                                               lowering.input().type, unused_class));
  }
  return writes;
}

void give_gradients(OperatorLowering& lowering, const std::vector<TensorView>& writes,
                    const std::vector<TensorView>& weights) {
  for (int i = 0; i < lowering.input_count(); ++i) {
    if (lowering.input_needs_gradient(i)) {
      lowering.give_input_gradient(i, writes[static_cast<std::size_t>(i)]);
    }
  }
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    if (lowering.parameter_needs_gradient(i)) {
      lowering.give_parameter_gradient(i, weights[static_cast<std::size_t>(i)]);
    }
  }
}

std::vector<TensorView> weight_gradients(OperatorLowering& lowering) {
  std::vector<TensorView> weights;
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    weights.push_back(lowering.new_parameter_gradient(i));
  }
  return weights;
}

}  // namespace stowage
