#include "planner/explain/find_name.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/model/device_pin.hpp"
#include "planner/problem/step_names.hpp"

namespace stowage {

namespace {

bool updates_within(const StepGraph& step, const KernelNode& node, std::string_view scope) {
  bool any = false;
  for (const TensorView& view : node.writes) {
    const Storage& written = step.storage(view.storage);
    if (written.storage_class != StorageClass::parameter) continue;
    if (!scope_contains_layer(scope, step.layer(written.op))) return false;
    any = true;
  }
  return any;
}

}  // namespace

Result<NamedParts> find_name(const Plan& plan, std::string_view name) {
  const StepGraph& step = *plan.step.graph;
  constexpr std::size_t longest_name = 10'000;
  if (name.size() > longest_name) {
    return failure(fmt::format("nothing in this plan has a name of {} bytes", name.size()));
  }
  NamedParts found;
  for (const Origin& origin : step.origins) {
    found.is_scope = found.is_scope || scope_contains_layer(name, origin.layer);
  }
  const bool exact = !found.is_scope && !has_wildcard(name);
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    const KernelNode& node = step.nodes[i];
    const bool fits = found.is_scope
                          ? scope_contains_layer(name, step.layer(node.op)) ||
                                (node.phase == Phase::update && updates_within(step, node, name))
                          : matches_name(name, node.name);
    if (fits) found.nodes.push_back(NodeId::of(i));
  }
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    const Storage& storage = step.storages[i];
    if (!is_placeable(storage)) continue;
    const bool fits = found.is_scope ? scope_contains_layer(name, step.layer(storage.op))
                                     : matches_name(name, storage.name);
    if (fits) found.storages.push_back(StorageId::of(i));
  }
  if (!found.nodes.empty() || !found.storages.empty()) return found;
  const std::vector<std::string> names = names_in(step);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  std::string hint = exact ? did_you_mean(name, candidates) : "";
  if (hint.empty()) hint = "names are of layers, scopes, kernels and storages of the plan's step";
  return failure(fmt::format("nothing in this plan is called '{}'", name), std::move(hint));
}

}  // namespace stowage
