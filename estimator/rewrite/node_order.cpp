#include "estimator/rewrite/node_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "estimator/base/kernel_set.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/node_dependences.hpp"

namespace stowage {
namespace {

using Order = std::vector<std::int32_t>;  // by place: the node that runs there

tl::unexpected<Diagnostics> refused(const StepGraph& step, std::string_view why) {
  return failure(fmt::format("the step of '{}' cannot be reordered: {}", step.model, why));
}

Result<Order> order_of_runs(const StepGraph& step, const std::vector<NodeRun>& runs) {
  std::unordered_map<std::string_view, std::int32_t> called;
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    called.emplace(step.nodes[i].name, static_cast<std::int32_t>(i));
  }
  Order order;
  order.reserve(step.nodes.size());
  for (const NodeRun& run : runs) {
    const auto first = called.find(run.first), last = called.find(run.last);
    for (const auto& [found, name] : {std::pair(first, run.first), std::pair(last, run.last)}) {
      if (found == called.end()) return refused(step, fmt::format("there is no node '{}'", name));
    }
    if (last->second < first->second) {
      return refused(step, fmt::format("'{}' does not come before '{}'", run.first, run.last));
    }
    const auto length = static_cast<std::size_t>(last->second - first->second) + 1;
    if (length > step.nodes.size() - order.size()) {
      return refused(step, fmt::format("nodes of '{}' to '{}' run twice", run.first, run.last));
    }
    for (std::int32_t node = first->second; node <= last->second; ++node) order.push_back(node);
  }
  std::vector<bool> runs_once(step.nodes.size(), false);
  for (const std::int32_t node : order) {
    const auto at = static_cast<std::size_t>(node);
    if (runs_once[at]) return refused(step, fmt::format("'{}' runs twice", step.nodes[at].name));
    runs_once[at] = true;
  }
  const auto missing = std::ranges::find(runs_once, false);
  if (missing != runs_once.end()) {
    const auto at = static_cast<std::size_t>(missing - runs_once.begin());
    return refused(step, fmt::format("'{}' does not run", step.nodes[at].name));
  }
  return order;
}

/// By node: the place at which it runs.
std::vector<std::int32_t> places_of(const Order& order) {
  std::vector<std::int32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  }
  return place;
}

/// Storages that are uploaded are uploaded just before their first use.
void load_before_first_use(StepGraph& step) {
  std::vector<NodeId> first(step.storages.size());
  for (std::size_t i = step.nodes.size(); i-- > 0;) {
    for (const TensorView& read : step.nodes[i].reads) first[read.storage.index()] = NodeId::of(i);
  }
  const ScriptHolds holds = step.script_holds;
  for (const auto& [storage, hold] : holds) {
    const NodeId use = first[storage.index()];
    if (!hold.loaded_before.valid() || !use.valid()) continue;
    step.script_holds.update(storage, [&](ScriptHold& moved) { moved.loaded_before = use; });
  }
}

StepGraph moved(StepGraph step, const Order& order, const std::vector<std::int32_t>& place) {
  std::vector<KernelNode> nodes;
  nodes.reserve(order.size());
  for (const std::int32_t source : order) {
    nodes.push_back(std::move(step.nodes[static_cast<std::size_t>(source)]));
  }
  step.nodes = std::move(nodes);
  renumber_convolutions(step);
  const ScriptHolds holds = step.script_holds;
  for (const auto& [storage, hold] : holds) {
    step.script_holds.update(storage, [&](ScriptHold& moved) {
      for (NodeId* id : {&moved.first_made_by, &moved.replaced_after}) {
        if (id->valid()) id->value = place[id->index()];
      }
    });
  }
  load_before_first_use(step);
  step.micro_batch = {};
  return step;
}

}  // namespace

std::vector<NodeRun> runs_of_order(const StepGraph& step, const std::vector<std::int32_t>& order) {
  std::vector<NodeRun> runs;
  const auto name = [&](std::int32_t node) {
    return step.nodes[static_cast<std::size_t>(node)].name;
  };
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && order[end] == order[end - 1] + 1) ++end;
    runs.push_back({name(order[i]), name(order[end - 1])});
    i = end;
  }
  return runs;
}

Result<StepGraph> with_order(StepGraph step, std::vector<NodeRun> order) {
  if (order.empty()) return step;
  if (!step.kernel_set().executable) {
    return refused(step, fmt::format("its kernels are those of {}, which runs its own order",
                                     step.kernel_set().name));
  }
  if (!step.settings.order.empty()) return refused(step, "it has been already");
  const auto nodes = order_of_runs(step, order);
  if (!nodes) return tl::unexpected(nodes.error());
  const std::vector<std::int32_t> place = places_of(*nodes);
  const auto before = node_dependences(step);
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (const std::int32_t needed : before[i]) {
      const auto at = static_cast<std::size_t>(needed);
      if (place[at] < place[i]) continue;
      return refused(step, fmt::format("'{}' would run before '{}', on which it depends",
                                       step.nodes[i].name, step.nodes[at].name));
    }
  }
  StepGraph result = moved(std::move(step), *nodes, place);
  result.settings.order = std::move(order);
  return result;
}

}  // namespace stowage
