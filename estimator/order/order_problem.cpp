#include "estimator/order/order_problem.hpp"

#include <algorithm>

#include "estimator/arena/arena.hpp"
#include "estimator/base/live_sum.hpp"
#include "estimator/step/node_dependences.hpp"

namespace stowage {
namespace {

bool is_scratch(const Storage& storage) {
  return storage.storage_class == StorageClass::temporary ||
         storage.storage_class == StorageClass::workspace;
}

/// Whether its value is kept for the next step, or comes from the previous one.
bool outlives_the_step(const Storage& storage, bool is_written, bool is_read_first) {
  return storage.persistence == Persistence::persistent &&
         (!is_written || storage.carries_over || is_read_first);
}

}  // namespace

/// Collects by storage the nodes that touch it, and by node its scratch; then the storages become
/// items, or part of what is always live.
OrderProblem order_problem(const SizedStep& step) {
  const StepGraph& graph = *step.graph;
  OrderProblem problem;
  problem.before = node_dependences(graph);
  struct Use {
    std::vector<std::int32_t> touches;
    bool is_written = false, is_read_first = false;
  };
  std::vector<Use> uses(graph.storages.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    const auto touch = [&](StorageId id, bool writes) {
      Use& use = uses[id.index()];
      if (use.touches.empty()) use.is_read_first = !writes;
      use.is_written = use.is_written || writes;
      const auto at = static_cast<std::int32_t>(i);
      if (use.touches.empty() || use.touches.back() != at) use.touches.push_back(at);
    };
    for (const TensorView& read : node.reads) touch(read.storage, false);
    for (const TensorView& written : node.writes) touch(written.storage, true);
    Bytes scratch;
    for (const StorageId id : node.temporaries) {
      scratch += round_up(step.storage_bytes[id.index()], arena_alignment);
    }
    if (!step.engines[i].empty()) {
      const auto least = std::ranges::min_element(step.engines[i], {}, &Engine::workspace);
      scratch += round_up(least->workspace, arena_alignment);
    }
    problem.scratch.push_back(scratch);
  }
  for (std::size_t s = 0; s < uses.size(); ++s) {
    const Storage& storage = graph.storages[s];
    if (uses[s].touches.empty() || is_scratch(storage)) continue;
    const Bytes bytes = round_up(step.storage_bytes[s], arena_alignment);
    if (outlives_the_step(storage, uses[s].is_written, uses[s].is_read_first)) {
      problem.always += bytes;
    } else {
      problem.items.push_back({bytes, std::move(uses[s].touches)});
    }
  }
  return problem;
}

std::vector<Bytes> live_in_order(const OrderProblem& problem, std::span<const std::int32_t> order) {
  std::vector<std::int32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  }
  LiveSum sum(static_cast<std::int32_t>(order.size()));
  sum.add({0, static_cast<std::int32_t>(order.size())}, problem.always);
  for (const OrderProblem::Item& item : problem.items) {
    std::int32_t first = static_cast<std::int32_t>(order.size()), last = -1;
    for (const std::int32_t touch : item.touches) {
      first = std::min(first, place[static_cast<std::size_t>(touch)]);
      last = std::max(last, place[static_cast<std::size_t>(touch)]);
    }
    sum.add({first, last + 1}, item.bytes);
  }
  std::vector<Bytes> live = std::move(sum).by_step();
  for (std::size_t i = 0; i < order.size(); ++i) {
    live[i] += problem.scratch[static_cast<std::size_t>(order[i])];
  }
  return live;
}

Bytes peak_of_order(const OrderProblem& problem, std::span<const std::int32_t> order) {
  return peak(live_in_order(problem, order)).bytes;
}

}  // namespace stowage
