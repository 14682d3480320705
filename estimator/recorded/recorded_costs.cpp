#include "estimator/recorded/recorded_costs.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "estimator/document/make_document.hpp"

namespace stowage {

namespace {

/// Adds rows for operators outside the modules that the recorder lists, such as the loss.
void add_missing_layers(const StepGraph& step, std::vector<Layer>& layers) {
  std::unordered_set<std::string_view> listed;
  for (const Layer& layer : layers) listed.insert(layer.name);
  std::vector<Layer> missing;
  for (const KernelNode& node : step.nodes) {
    if (node.phase != Phase::forward && node.phase != Phase::loss) continue;
    const std::string_view name = step.layer(node.op);
    if (name.empty() || node.writes.empty() || !listed.insert(name).second) continue;
    missing.push_back({.name = std::string(name),
                       .op = std::string(to_string(node.phase)),
                       .output = node.writes.front().shape});
  }
  std::ranges::move(missing, std::back_inserter(layers));
}

}  // namespace

void add_recorded_costs(StepDocument& document) {
  if (document.layers.empty()) return;
  std::vector<Layer> layers = document.layers;
  add_missing_layers(*document.graph, layers);
  std::unordered_map<std::string_view, Layer*> by_name;
  for (Layer& layer : layers) {
    layer.flops = layer.saved_bytes = 0;
    by_name.try_emplace(layer.name, &layer);
  }
  std::vector<Layer*> by_origin;
  for (const Origin& origin : document.graph->origins) {
    const auto found = by_name.find(origin.layer);
    by_origin.push_back(found == by_name.end() ? nullptr : found->second);
  }
  try {
    add_step_costs(*document.graph, by_origin);
  } catch (const ArithmeticOverflow&) {
    return;
  }
  document.layers = std::move(layers);
  document.has_costs = true;
}

}  // namespace stowage
