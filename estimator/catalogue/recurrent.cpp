// lstm, gru and rnn over whole sequences: their rows, parameters and shape rule.
#include "estimator/catalogue/recurrent.hpp"

#include <fmt/format.h>

#include <map>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

RecurrentNetwork network_of(const Attributes& attributes, const Shape& x) {
  RecurrentNetwork n;
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

namespace {

constexpr std::int64_t most_layers = 64;

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

std::vector<ParameterSpec> recurrent_parameters(const RecurrentNetwork& n) {
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

/// Checks the input and the initial states, then gives the shapes of the result and of the final
/// states, the parameters, and the operations of all products.
tl::expected<Inference, InferenceError> infer_recurrent(const Attributes& attributes,
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
  const RecurrentNetwork n = network_of(attributes, x.shape);
  if (n.projects && n.result >= n.hidden) {
    return refuse(fmt::format("projection {} is not below hidden {}", n.result, n.hidden),
                  "projection");
  }
  const std::vector<Shape> states = n.has_cell_state()
                                        ? std::vector<Shape>{n.hidden_state(), n.cell_state()}
                                        : std::vector<Shape>{n.hidden_state()};
  if (inputs.size() > 1 && inputs.size() != states.size() + 1) {
    return refuse(fmt::format("{} cells start from {} states, and {} are given", n.cell,
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
  result.parameters = recurrent_parameters(n);
  Affine products = 0;
  for (const ParameterSpec& parameter : result.parameters) {
    if (parameter.shape.size() == 2) products = products + element_count(parameter.shape);
  }
  result.flops = n.sequence * n.batch * products * Affine(2);
  return result;
}

AttributeSpec recurrent_flag(std::string_view name, std::string_view doc, bool value) {
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
                         recurrent_flag("bidirectional", "a second direction, from the end", false),
                         {.name = "dropout",
                          .type = AttributeType::real,
                          .doc = "probability of a zero between layers, in training",
                          .default_value = 0.0,
                          .minimum = 0,
                          .maximum = 0.999999},
                         recurrent_flag("batch_first", "the input is [batch, sequence, features]",
                                        false),
                         recurrent_flag("bias", "add learned offsets, two of each gate", true),
                         recurrent_flag("states", "the last states are outputs too", false)},
          .max_inputs = states + 1,
          .infer = infer_recurrent,
          .lowering = {.stowage = {forward_own_network, backward_own_network},
                       .pytorch = {forward_cudnn_network, backward_cudnn_network}},
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
