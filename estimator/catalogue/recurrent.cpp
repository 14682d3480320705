// lstm, gru and rnn over whole sequences.
//
// PyTorch on CUDA calls cuDNN (ATen/native/cudnn/RNN.cpp, 2.15): it saves the input, the first
// states (zeros that it makes where none are given), the result and cuDNN's reserve. Its weights
// are views of one buffer, and so are their gradients; here each is a storage of its own, of the
// same bytes in sum. cuDNN says the sizes of its reserve and workspace only on a GPU
// (cudnnGetRNNTempSpaceSizes wants a handle): `cudnn_reserve` and `cudnn_workspace` are fitted to
// one published measurement each of lstm and gru, of cuDNN 6 or 7 in float32 (pytorch issue 2895:
// 4 layers of 320, 123 inputs, 25,000 positions in all: reserves of 736,000,000 and 864,000,000
// bytes, exactly fitted; workspaces of 17,730,560 and 13,169,920 bytes, 1.46 and 1.45 times the
// weights). Today's cuDNN may differ, and rnn's is an analogy. Not counted: cuDNN's dropout state,
// one for all layers of a process, a few MiB.
#include <fmt/format.h>

#include <deque>
#include <map>
#include <string>

#include "estimator/catalogue/dropout.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/rnn_reserve.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_layers = 64;

/// What the attributes and the input's shape say.
struct Network {
  std::string cell;  // lstm, gru, tanh, relu
  std::int64_t gates = 1, layers = 1, directions = 1, hidden = 1;
  std::int64_t result = 1;  // features of a direction's result: hidden, or the projection's
  std::int64_t inputs = 1;
  bool has_bias = true, projects = false, batch_first = false;
  Affine sequence, batch;
  [[nodiscard]] bool has_cell_state() const { return cell == "lstm"; }
  [[nodiscard]] Shape hidden_state() const { return {layers * directions, batch, result}; }
  [[nodiscard]] Shape cell_state() const { return {layers * directions, batch, hidden}; }
};

Network network_of(const Attributes& attributes, const Shape& x) {
  Network n;
  if (attributes.has("nonlinearity")) {
    n.cell = attributes.text("nonlinearity");
  } else {
    n.cell = attributes.has("projection") ? "lstm" : "gru";
  }
  n.gates = n.cell == "lstm" ? 4 : n.cell == "gru" ? 3 : 1;
  n.layers = attributes.integer("layers");
  n.directions = attributes.boolean("bidirectional") ? 2 : 1;
  n.hidden = attributes.integer("hidden");
  n.projects = n.cell == "lstm" && attributes.integer("projection") > 0;
  n.result = n.projects ? attributes.integer("projection") : n.hidden;
  n.has_bias = attributes.boolean("bias");
  n.batch_first = attributes.boolean("batch_first");
  n.sequence = x[n.batch_first ? 1 : 0];
  n.batch = x[n.batch_first ? 0 : 1];
  n.inputs = x[2].constant;
  return n;
}

/// "weight_ih_l0_reverse"; the catalogue keeps views of names, which live here for good.
std::string_view parameter_name(std::string_view kind, std::int64_t layer, bool reverse) {
  static const auto names = [] {
    std::map<std::string, std::string, std::less<>> all;
    for (const std::string_view what :
         {"weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"}) {
      for (std::int64_t i = 0; i < most_layers; ++i) {
        for (const std::string_view suffix : {"", "_reverse"}) {
          const std::string name = fmt::format("{}_l{}{}", what, i, suffix);
          all.emplace(name, name);
        }
      }
    }
    return all;
  }();
  return names.find(fmt::format("{}_l{}{}", kind, layer, reverse ? "_reverse" : ""))->second;
}

std::vector<ParameterSpec> parameters_of(const Network& n) {
  std::vector<ParameterSpec> all;
  for (std::int64_t layer = 0; layer < n.layers; ++layer) {
    const std::int64_t inputs = layer == 0 ? n.inputs : n.directions * n.result;
    for (const bool reverse : {false, true}) {
      if (reverse && n.directions == 1) continue;
      const auto add = [&](std::string_view kind, Shape shape) {
        all.push_back({.name = parameter_name(kind, layer, reverse), .shape = std::move(shape)});
      };
      const Affine rows = Affine(n.gates) * Affine(n.hidden);
      add("weight_ih", {rows, inputs});
      add("weight_hh", {rows, n.result});
      if (n.has_bias) add("bias_ih", {rows});
      if (n.has_bias) add("bias_hh", {rows});
      if (n.projects) add("weight_hr", {n.result, n.hidden});
    }
  }
  return all;
}

tl::expected<Inference, InferenceError> infer(const Attributes& attributes,
                                              std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const bool batch_first = attributes.boolean("batch_first");
  const std::string_view wanted =
      batch_first ? "[batch, sequence, features]" : "[sequence, batch, features]";
  if (auto error = want_rank(x, 3, wanted)) return tl::unexpected(*error);
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  if (auto error = want_constant(x.shape[2], "last axis")) return tl::unexpected(*error);
  if (element_count(x.shape) == Affine(0)) {
    return refuse(fmt::format("its input {} is empty", to_string(x.shape)), {}, 0);
  }
  const Network n = network_of(attributes, x.shape);
  if (n.projects && n.result >= n.hidden) {
    return refuse(fmt::format("projection {} is not below hidden {}", n.result, n.hidden),
                  "projection");
  }
  const std::vector<Shape> states = n.has_cell_state()
                                        ? std::vector<Shape>{n.hidden_state(), n.cell_state()}
                                        : std::vector<Shape>{n.hidden_state()};
  if (inputs.size() > 1 && inputs.size() != states.size() + 1) {
    return refuse(fmt::format("an {} starts from {} states, and {} are given", "lstm",
                              states.size(), inputs.size() - 1));
  }
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].shape != states[i - 1] || inputs[i].type != x.type) {
      return refuse(fmt::format("a first state is {} {}, but it is {} {}", to_string(x.type),
                                to_string(states[i - 1]), to_string(inputs[i].type),
                                to_string(inputs[i].shape)),
                    {}, static_cast<int>(i));
    }
  }
  Inference result;
  Shape y = x.shape;
  y[2] = Affine(n.directions) * Affine(n.result);
  result.outputs.push_back({y, x.type});
  if (attributes.boolean("states")) {
    for (const Shape& state : states) result.outputs.push_back({state, x.type});
  }
  result.parameters = parameters_of(n);
  Affine products = 0;
  for (const ParameterSpec& parameter : result.parameters) {
    if (parameter.shape.size() == 2) products = products + element_count(parameter.shape);
  }
  result.flops = n.sequence * n.batch * products * Affine(2);
  return result;
}

Network network_of(const OperatorLowering& lowering) {
  return network_of(lowering.attributes(), lowering.input().shape);
}

Affine flops_of(const OperatorLowering& lowering, const Network& n) {
  Affine products = 0;
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    const Shape shape = lowering.parameter(i).shape;
    if (shape.size() == 2) products = products + element_count(shape);
  }
  return n.sequence * n.batch * products * Affine(2);
}

Attributes cell_attributes(const OperatorLowering& lowering, const Network& n) {
  Attributes attributes = dropout_attributes(lowering, lowering.attributes().real("dropout"));
  attributes.set("cell", n.cell);
  return attributes;
}

Affine parameter_bytes(const OperatorLowering& lowering) {
  Affine bytes = 0;
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    bytes = bytes + byte_count(lowering.parameter(i));
  }
  return bytes;
}

Affine cudnn_reserve(const Network& n, DataType type) {
  const std::int64_t vectors = n.cell == "lstm" ? 5 : n.cell == "gru" ? 6 : 1;
  return n.sequence * n.batch *
         Affine(element_size(type) * n.hidden * n.directions * (n.layers * vectors + n.layers - 1));
}

Affine cudnn_workspace(const OperatorLowering& lowering) {
  const Affine weights = parameter_bytes(lowering);
  return weights + Affine(weights.constant / 2);
}

/// The first states: inputs, or zeros.
std::vector<TensorView> first_states(OperatorLowering& lowering, const Network& n) {
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

/// The last states, outputs or not.
std::vector<TensorView> last_states(OperatorLowering& lowering, const Network& n) {
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

StorageId scratch(OperatorLowering& lowering, std::string_view name, Affine bytes) {
  return lowering.new_tensor(name, {bytes}, DataType::uint8, StorageClass::workspace).storage;
}

// cuDNN works on [sequence, batch, features]: with batch_first the input is copied, and the result
// is a view of one laid out so.
void forward_cudnn(OperatorLowering& lowering) {
  const Network n = network_of(lowering);
  const TensorView x = lowering.input();
  std::vector<TensorView> reads{x};
  const std::vector<TensorView> first = first_states(lowering, n);
  reads.insert(reads.end(), first.begin(), first.end());
  append_parameters(lowering, reads);
  TensorView y = lowering.new_output();
  if (n.batch_first) {
    y.strides = {y.shape[2], y.shape[0] * y.shape[2], 1};
    lowering.set_output(0, y);
  }
  std::vector<TensorView> writes{y};
  for (const TensorView& state : last_states(lowering, n)) writes.push_back(state);
  const std::vector<std::int64_t> swap{1, 0, 2};
  const bool copies = !is_contiguous(n.batch_first ? permuted(x, swap) : x);
  std::vector<StorageId> temporaries{scratch(
      lowering, "workspace", cudnn_workspace(lowering) + (copies ? byte_count(x) : Affine(0)))};
  if (lowering.training()) {
    const TensorView reserve = lowering.new_tensor("reserve", {cudnn_reserve(n, x.type)},
                                                   DataType::uint8, StorageClass::saved_auxiliary);
    writes.push_back(reserve);
    lowering.save("reserve", reserve);
  }
  lowering.emit(Kernel::rnn_forward, "forward", reads, writes,
                {.attributes = cell_attributes(lowering, n),
                 .temporaries = temporaries,
                 .flops = flops_of(lowering, n)});
  lowering.save("input", x);
  lowering.save("h0", first[0]);
  if (n.has_cell_state()) lowering.save("c0", first[1]);
  lowering.save("output", y);
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    lowering.save(fmt::format("weight{}", i), lowering.parameter(i));
  }
}

void forward_own(OperatorLowering& lowering) {
  const Network n = network_of(lowering);
  std::vector<TensorView> reads{lowering.input()};
  const std::vector<TensorView> first = first_states(lowering, n);
  reads.insert(reads.end(), first.begin(), first.end());
  append_parameters(lowering, reads);
  const TensorView y = lowering.new_output();
  std::vector<TensorView> writes{y};
  for (const TensorView& state : last_states(lowering, n)) writes.push_back(state);
  if (lowering.training()) {
    const Affine bytes =
        n.sequence * n.batch * Affine(rnn_reserve_bytes(n.cell, n.layers, n.directions, n.hidden));
    writes.push_back(
        lowering.new_tensor("reserve", {bytes}, DataType::uint8, StorageClass::saved_auxiliary));
    lowering.save("reserve", writes.back());
  }
  lowering.emit(Kernel::rnn_forward, "forward", reads, writes,
                {.attributes = cell_attributes(lowering, n), .flops = flops_of(lowering, n)});
  lowering.save("input", lowering.input());
  lowering.save("h0", first[0]);
  if (n.has_cell_state()) lowering.save("c0", first[1]);
  lowering.save("output", y);
}

TensorView zero_gradient(OperatorLowering& lowering, std::string_view name, const Shape& shape) {
  const TensorView zeros =
      lowering.new_tensor(name, shape, lowering.input().type, StorageClass::activation_gradient);
  Attributes value;
  value.set("value", 0.0);
  lowering.emit(Kernel::fill, fmt::format("backward.{}", name), {}, {zeros}, {.attributes = value});
  return zeros;
}

TensorView result_gradient(OperatorLowering& lowering) {
  if (lowering.has_output_gradient(0)) return lowering.output_gradient(0);
  return zero_gradient(lowering, "grad_output", lowering.output_type(0).shape);
}

/// x, h0, [c0], weights, y, reserve, dy.
std::vector<TensorView> backward_reads(OperatorLowering& lowering, const Network& n) {
  std::vector<TensorView> reads{lowering.saved("input"), lowering.saved("h0")};
  if (n.has_cell_state()) reads.push_back(lowering.saved("c0"));
  append_parameters(lowering, reads);
  reads.push_back(lowering.saved("output"));
  reads.push_back(lowering.saved("reserve"));
  reads.push_back(result_gradient(lowering));
  return reads;
}

/// dx, dh0, [dc0]; the states' are inputs' gradients where there are such inputs.
std::vector<TensorView> backward_writes(OperatorLowering& lowering, const Network& n) {
  std::vector<TensorView> writes{lowering.new_input_gradient(0)};
  const std::vector<Shape> shapes = n.has_cell_state()
                                        ? std::vector<Shape>{n.hidden_state(), n.cell_state()}
                                        : std::vector<Shape>{n.hidden_state()};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const int input = static_cast<int>(i) + 1;
    writes.push_back(
        input < lowering.input_count()
            ? lowering.new_input_gradient(input)
            : lowering.new_tensor(i == 0 ? "grad_h0" : "grad_c0", shapes[i], lowering.input().type,
                                  lowering.pytorch() ? StorageClass::workspace
                                                     : StorageClass::activation_gradient));
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

// Where no gradient of a last state arrives, PyTorch makes zeros.
void backward_cudnn(OperatorLowering& lowering) {
  const Network n = network_of(lowering);
  std::vector<TensorView> reads = backward_reads(lowering, n);
  const TensorView dy = reads.back();
  const TensorView& x = lowering.saved("input");
  const std::vector<std::int64_t> swap{1, 0, 2};
  const auto copied = [&](const TensorView& view) {
    return is_contiguous(n.batch_first ? permuted(view, swap) : view) ? Affine(0)
                                                                      : byte_count(view);
  };
  Affine inner = cudnn_workspace(lowering) + copied(x) + copied(dy);
  const Affine element = element_size(x.type);
  for (int i = 1; i <= (n.has_cell_state() ? 2 : 1); ++i) {
    if (lowering.attributes().boolean("states") && lowering.has_output_gradient(i)) {
      reads.push_back(lowering.output_gradient(i));
    } else {
      inner = inner + element_count(i == 1 ? n.hidden_state() : n.cell_state()) * element;
    }
  }
  std::vector<TensorView> writes = backward_writes(lowering, n);
  const std::vector<TensorView> weights = weight_gradients(lowering);
  std::vector<TensorView> all = writes;
  all.insert(all.end(), weights.begin(), weights.end());
  lowering.emit(Kernel::rnn_backward, "backward", reads, all,
                {.attributes = cell_attributes(lowering, n),
                 .temporaries = {scratch(lowering, "backward_workspace", inner)},
                 .flops = flops_of(lowering, n) * Affine(2)});
  give_gradients(lowering, writes, weights);
}

void backward_own(OperatorLowering& lowering) {
  const Network n = network_of(lowering);
  std::vector<TensorView> reads = backward_reads(lowering, n);
  const bool states = lowering.attributes().boolean("states");
  const bool cell = states && n.has_cell_state() && lowering.has_output_gradient(2);
  if (states && lowering.has_output_gradient(1)) {
    reads.push_back(lowering.output_gradient(1));
  } else if (cell) {
    reads.push_back(zero_gradient(lowering, "grad_hn", n.hidden_state()));
  }
  if (cell) reads.push_back(lowering.output_gradient(2));
  std::vector<TensorView> writes = backward_writes(lowering, n);
  const std::vector<TensorView> weights = weight_gradients(lowering);
  std::vector<TensorView> all = writes;
  all.insert(all.end(), weights.begin(), weights.end());
  lowering.emit(
      Kernel::rnn_backward, "backward", reads, all,
      {.attributes = cell_attributes(lowering, n), .flops = flops_of(lowering, n) * Affine(2)});
  give_gradients(lowering, writes, weights);
}

AttributeSpec flag(std::string_view name, std::string_view doc, bool value) {
  return {.name = name, .type = AttributeType::boolean, .doc = doc, .default_value = value};
}

OperatorRow recurrent(std::string_view name, std::string_view doc, int states) {
  return {.name = name,
          .doc = doc,
          .attributes = {{.name = "hidden",
                          .type = AttributeType::integer,
                          .doc = "features of the hidden state",
                          .minimum = 1,
                          .maximum = 1 << 24},
                         {.name = "layers",
                          .type = AttributeType::integer,
                          .doc = "how many, one above the other",
                          .default_value = std::int64_t{1},
                          .minimum = 1,
                          .maximum = static_cast<double>(most_layers)},
                         flag("bidirectional", "a second direction, from the end", false),
                         {.name = "dropout",
                          .type = AttributeType::real,
                          .doc = "probability of a zero between layers, in training",
                          .default_value = 0.0,
                          .minimum = 0,
                          .maximum = 0.999999},
                         flag("batch_first", "the input is [batch, sequence, features]", false),
                         flag("bias", "add learned offsets, two of each gate", true),
                         flag("states", "the last states are outputs too", false)},
          .max_inputs = states + 1,
          .infer = infer,
          .lowering = {LoweringRules{forward_cudnn, backward_cudnn},
                       LoweringRules{forward_own, backward_own}},
          .autocast = AutocastClass::lower};
}

}  // namespace

OperatorRow rows::lstm() {
  OperatorRow row = recurrent("lstm", "long short-term memory over a sequence", 2);
  row.attributes.push_back({.name = "projection",
                            .type = AttributeType::integer,
                            .doc = "features of the projected hidden state; 0: none",
                            .default_value = std::int64_t{0},
                            .minimum = 0,
                            .maximum = 1 << 24});
  return row;
}

OperatorRow rows::gru() { return recurrent("gru", "gated recurrent units over a sequence", 1); }

OperatorRow rows::rnn() {
  OperatorRow row = recurrent("rnn", "a plain recurrent network over a sequence", 1);
  row.attributes.push_back({.name = "nonlinearity",
                            .type = AttributeType::choice,
                            .doc = "activation of a cell",
                            .default_value = std::string("tanh"),
                            .choices = {"tanh", "relu"}});
  return row;
}

}  // namespace stowage
