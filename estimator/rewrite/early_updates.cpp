#include "estimator/rewrite/early_updates.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "estimator/rewrite/renumber.hpp"

namespace stowage {

namespace {

/// By node: the node after which it is placed. Nodes that keep their place have their own number.
std::vector<std::int32_t> anchors(const StepGraph& step) {
  std::vector<std::int32_t> written(step.storages.size(), -1);  // anchor of the last write
  std::vector<std::int32_t> touched(step.storages.size(), -1);  // of the last use of any kind
  std::vector<std::int32_t> anchor;
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    const KernelNode& node = step.nodes[i];
    auto at = static_cast<std::int32_t>(i);
    if (node.phase == Phase::update) {
      at = -1;
      for (const TensorView& view : node.reads) at = std::max(at, written[view.storage.index()]);
      for (const TensorView& view : node.writes) at = std::max(at, touched[view.storage.index()]);
      for (const StorageId id : node.holds) at = std::max(at, written[id.index()]);
      if (at < 0) at = static_cast<std::int32_t>(i);  // on nothing of this step: it stays
    }
    const auto use = [&](StorageId id, std::vector<std::int32_t>& last) {
      last[id.index()] = std::max(last[id.index()], at);
    };
    for (const TensorView& view : node.reads) use(view.storage, touched);
    for (const StorageId id : node.holds) use(id, touched);
    for (const TensorView& view : node.writes) {
      use(view.storage, touched);
      use(view.storage, written);
    }
    anchor.push_back(at);
  }
  return anchor;
}

}  // namespace

Result<StepGraph> with_early_updates(StepGraph step) {
  if (step.settings.mode != Mode::train) return failure("an inference has no updates");
  if (step.settings.early_updates) return failure("its updates are early already");
  const std::vector<std::int32_t> anchor = anchors(step);
  std::vector<std::size_t> order(step.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t node) {
    return std::pair(anchor[node], step.nodes[node].phase == Phase::update);
  });
  std::vector<NodeId> place(order.size() + 1);
  std::vector<KernelNode> nodes;
  nodes.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = NodeId::of(i);
    nodes.push_back(std::move(step.nodes[order[i]]));
  }
  place.back() = NodeId::of(order.size());
  step.nodes = std::move(nodes);
  const NodeId first = step.micro_batch.first_node, end = step.micro_batch.end_node;
  renumber_nodes(step, place);
  // Half-open: behind the last node of the micro-batch.
  if (first < end) {
    const NodeId last = place[end.index() - 1];
    step.micro_batch.end_node = NodeId::of(last.index() + 1);
  }
  // Hooks run within backward(), which keeps the gradient that it starts from until it returns.
  if (step.kernel_set().library_optimizer) {
    for (const ScriptVariable& variable : step.micro_batch.variables) {
      if (variable.kind != ScriptVariable::Kind::first_gradient) continue;
      step.nodes.back().holds.push_back(variable.storage);
    }
  }
  step.settings.early_updates = true;
  return step;
}

}  // namespace stowage
