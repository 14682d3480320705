#include "estimator/onnx/constant_weights.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "estimator/onnx/onnx_numbers.hpp"

namespace stowage {

namespace {

/// How a node uses a value; several uses of one are added as bits.
enum WeightUse : unsigned {
  no_weight = 0,
  as_weight = 1,   ///< whatever it holds
  as_vector = 2,   ///< if it has one axis: a bias
  as_operand = 4,  ///< if it has several elements
  of_norm = 8,     ///< unless it is ones or zeros
  as_table = 16,   ///< if it has two axes
};

struct WeightInputs {
  std::string_view op;
  std::size_t first, last;
  WeightUse use;
  bool also_of_pytorch;
};

constexpr std::array<WeightInputs, 17> weight_inputs{{
    {"Conv", 1, 2, as_weight, true},
    {"ConvTranspose", 1, 2, as_weight, true},
    {"Gemm", 1, 2, as_weight, true},
    {"MatMul", 0, 1, as_weight, true},
    {"PRelu", 1, 1, as_weight, true},
    {"LSTM", 1, 3, as_weight, true},
    {"GRU", 1, 3, as_weight, true},
    {"RNN", 1, 3, as_weight, true},
    {"BatchNormalization", 1, 4, of_norm, false},
    {"LayerNormalization", 1, 2, of_norm, false},
    {"RMSNormalization", 1, 1, of_norm, false},
    {"SimplifiedLayerNormalization", 1, 1, of_norm, false},
    {"GroupNormalization", 1, 2, of_norm, false},
    {"InstanceNormalization", 1, 2, of_norm, false},
    {"Add", 0, 1, as_operand, false},
    {"Mul", 0, 1, as_operand, false},
    {"Gather", 0, 0, as_table, false},
}};

bool is_view_op(std::string_view op) {
  constexpr std::array<std::string_view, 7> views{"Identity", "Cast",      "CastLike", "Reshape",
                                                  "Squeeze",  "Unsqueeze", "Transpose"};
  return std::ranges::find(views, op) != views.end();
}

// Values that depend on the numbers in the graph's inputs, and those of them that are products.
struct ActiveValues {
  std::unordered_set<std::string_view> all, products;
};

ActiveValues active_values(const OnnxGraph& graph) {
  ActiveValues active;
  for (const OnnxValueInfo& input : graph.inputs) active.all.insert(input.name);
  for (const OnnxTensor& tensor : graph.initializers) active.all.erase(tensor.name);
  for (const OnnxNode& node : graph.nodes) {
    const bool is_active =
        node.op != "Shape" && node.op != "Size" && node.op != "ConstantOfShape" &&
        std::ranges::any_of(node.inputs,
                            [&](const std::string& input) { return active.all.contains(input); });
    if (!is_active) continue;
    active.all.insert(node.outputs.begin(), node.outputs.end());
    if (node.op == "MatMul" && !node.outputs.empty()) active.products.insert(node.outputs[0]);
  }
  return active;
}

// By value: how nodes use it as a weight, also through views. Readers come after what they read.
std::unordered_map<std::string_view, unsigned> weight_uses(const OnnxGraph& graph,
                                                           bool of_pytorch) {
  const ActiveValues active = active_values(graph);
  std::unordered_map<std::string_view, unsigned> uses;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const OnnxNode& node = graph.nodes[n];
    if (is_view_op(node.op) && !node.inputs.empty() && !node.outputs.empty()) {
      const auto use = uses.find(node.outputs[0]);
      if (use != uses.end()) uses[node.inputs[0]] |= use->second;
      continue;
    }
    const auto row = std::ranges::find(weight_inputs, node.op, &WeightInputs::op);
    const auto is_active = [&](const std::string& input) { return active.all.contains(input); };
    if (row == weight_inputs.end() || std::ranges::none_of(node.inputs, is_active)) continue;
    const bool adds_to_product =
        node.op == "Add" && std::ranges::any_of(node.inputs, [&](const std::string& input) {
          return active.products.contains(input);
        });
    unsigned use = of_pytorch && !row->also_of_pytorch ? no_weight : row->use;
    if (adds_to_product) use |= as_vector;
    for (std::size_t i = row->first; i <= row->last && i < node.inputs.size(); ++i) {
      if (use != no_weight && !is_active(node.inputs[i])) uses[node.inputs[i]] |= use;
    }
  }
  return uses;
}

bool is_filler(const OnnxTensor& tensor) {
  const auto all = [&](double number) {
    return !tensor.reals.empty() &&
           std::ranges::all_of(tensor.reals, [&](double one) { return one == number; });
  };
  return tensor.has_numbers && (all(0) || all(1));
}

bool is_weight(const OnnxTensor& tensor, unsigned use) {
  if (!is_onnx_real(tensor.type)) return false;
  const bool is_single =
      std::ranges::all_of(tensor.dims, [](std::int64_t extent) { return extent == 1; });
  return (use & as_weight) != 0 || ((use & as_vector) != 0 && tensor.dims.size() == 1) ||
         ((use & as_operand) != 0 && !is_single) || ((use & of_norm) != 0 && !is_filler(tensor)) ||
         ((use & as_table) != 0 && tensor.dims.size() == 2);
}

}  // namespace

void make_constant_weights_initialisers(OnnxGraph& graph, bool of_pytorch) {
  const auto is_constant = [](const OnnxNode& node) {
    return node.op == "Constant" && node.domain.empty() && node.outputs.size() == 1;
  };
  if (std::ranges::none_of(graph.nodes, is_constant)) return;
  std::vector<bool> is_moved(graph.nodes.size());
  std::vector<OnnxTensor> moved;
  {
    const auto uses = weight_uses(graph, of_pytorch);  // has views of the graph's names
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const OnnxNode& node = graph.nodes[i];
      const auto use = is_constant(node) ? uses.find(node.outputs[0]) : uses.end();
      if (use == uses.end()) continue;
      OnnxTensor tensor = tensor_of_constant(node);
      if (!is_weight(tensor, use->second)) continue;
      tensor.name = node.outputs[0];
      moved.push_back(std::move(tensor));
      is_moved[i] = true;
    }
  }
  std::vector<OnnxNode> nodes;
  nodes.reserve(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_moved[i]) nodes.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(nodes);
  graph.initializers.insert(graph.initializers.end(), std::make_move_iterator(moved.begin()),
                            std::make_move_iterator(moved.end()));
}

}  // namespace stowage
