#include "estimator/onnx/first_concats.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stowage {

namespace {

constexpr std::string_view joint = "Concat";
constexpr int longest_layer = 64;  ///< nodes

using Producers = std::map<std::string_view, std::size_t>;  ///< of values: the node

Producers producers_of(const OnnxGraph& graph) {
  Producers producers;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs) producers.emplace(output, i);
  }
  return producers;
}

/// The node that reads `from` and leads to `value` along first inputs, without a Concat in between.
std::optional<std::size_t> first_reader(const OnnxGraph& graph, const Producers& producers,
                                        std::string_view value, std::string_view from) {
  for (int i = 0; i < longest_layer; ++i) {
    const auto found = producers.find(value);
    if (found == producers.end()) return std::nullopt;
    const OnnxNode& node = graph.nodes[found->second];
    if (node.op == joint || node.inputs.empty()) return std::nullopt;
    if (node.inputs[0] == from) return found->second;
    value = node.inputs[0];
  }
  return std::nullopt;
}

/// Nodes whose first input was a Concat of one tensor, with its axis.
std::map<std::size_t, std::int64_t> readers_of_lone_joints(const OnnxGraph& graph) {
  const Producers producers = producers_of(graph);
  std::map<std::pair<std::string_view, std::string_view>, const OnnxNode*> joints_of_two;
  std::set<std::string_view> joined_alone;
  for (const OnnxNode& node : graph.nodes) {
    if (node.op != joint || node.outputs.empty()) continue;
    if (node.inputs.size() == 1) joined_alone.insert(node.inputs[0]);
    if (node.inputs.size() == 2) {
      joints_of_two.emplace(
          std::pair<std::string_view, std::string_view>(node.inputs[0], node.inputs[1]), &node);
    }
  }
  std::map<std::size_t, std::int64_t> readers;
  for (const OnnxNode& node : graph.nodes) {
    if (node.op != joint || node.inputs.size() != 3 || joined_alone.contains(node.inputs[0])) {
      continue;
    }
    const auto two = joints_of_two.find({node.inputs[0], node.inputs[1]});
    if (two == joints_of_two.end()) continue;
    const auto reader = first_reader(graph, producers, node.inputs[1], node.inputs[0]);
    if (reader && first_reader(graph, producers, node.inputs[2], two->second->outputs[0])) {
      readers.emplace(*reader, node.integer("axis", 0));
    }
  }
  return readers;
}

}  // namespace

int restore_first_concats(OnnxGraph& graph) {
  const std::map<std::size_t, std::int64_t> readers = readers_of_lone_joints(graph);
  if (readers.empty()) return 0;
  std::vector<OnnxNode> nodes;
  nodes.reserve(graph.nodes.size() + readers.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    OnnxNode node = std::move(graph.nodes[i]);
    if (const auto copied = readers.find(i); copied != readers.end()) {
      const std::string name = node.inputs[0] + ".joined";
      OnnxAttribute axis{.name = "axis", .type = 2};  // AttributeProto.INT
      axis.integer = copied->second;
      nodes.push_back({.name = name,
                       .op = std::string(joint),
                       .inputs = {node.inputs[0]},
                       .outputs = {name},
                       .attributes = {std::move(axis)},
                       .offset = node.offset});
      node.inputs[0] = name;
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return static_cast<int>(readers.size());
}

}  // namespace stowage
