#include "estimator/rewrite/early_updates.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace stowage {

namespace {

/// By node: behind which of the nodes kept in their order it stands (its own number, if it is one).
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

template <typename Member>
void move_ids(StepGraph& step, const Member& moved) {
  for (Storage& storage : step.storages) {
    moved(storage.loaded_before);
    moved(storage.first_made_by);
    moved(storage.replaced_after);
  }
  MicroBatch& part = step.micro_batch;
  for (NodeId& id : part.first_only) moved(id);
  for (GradientArrival& arrival : part.arrivals) moved(arrival.after);
  for (ScriptVariable& variable : part.variables) moved(variable.assigned_after);
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
  std::vector<std::int32_t> place(order.size());
  std::vector<KernelNode> nodes;
  nodes.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<std::int32_t>(i);
    nodes.push_back(std::move(step.nodes[order[i]]));
  }
  step.nodes = std::move(nodes);
  const auto moved = [&](NodeId& id) {
    if (id.valid()) id.value = place[id.index()];
  };
  move_ids(step, moved);
  // Half-open: behind the last node of the micro-batch.
  MicroBatch& part = step.micro_batch;
  if (part.first_node < part.end_node) {
    NodeId last = NodeId::of(part.end_node.index() - 1);
    moved(part.first_node);
    moved(last);
    part.end_node = NodeId::of(last.index() + 1);
  }
  step.settings.early_updates = true;
  return step;
}

}  // namespace stowage
