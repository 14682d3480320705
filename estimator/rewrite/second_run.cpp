#include "estimator/rewrite/second_run.hpp"

#include <algorithm>

namespace stowage {

namespace {

constexpr std::size_t save_mean = 1, save_invstd = 2;    // places in a batch norm's writes
constexpr std::int64_t flops_each = 8, flops_again = 4;  // of a batch norm: without the statistics

KernelNode applied(const KernelNode& batch_norm) {
  KernelNode again = batch_norm;
  again.kernel = Kernel::batch_norm_apply;
  again.attributes = {};
  again.flops = {batch_norm.flops.constant / flops_each * flops_again,
                 batch_norm.flops.slope / flops_each * flops_again};
  again.writes.resize(1);
  again.reads[again.reads.size() - 2] = batch_norm.writes[save_mean];
  again.reads.back() = batch_norm.writes[save_invstd];
  return again;
}

bool is_activation(const KernelNode& node) {
  return node.kernel == Kernel::relu_forward || node.kernel == Kernel::unary_forward;
}

bool touches(const KernelNode& node, StorageId id) {
  const auto is_it = [&](const TensorView& view) { return view.storage == id; };
  return std::ranges::any_of(node.reads, is_it) || std::ranges::any_of(node.writes, is_it);
}

/// The first of the nodes after `from` that touches the storage, where it works in place on `y`.
NodeId activation_of(const StepGraph& step, const std::vector<NodeId>& nodes, std::size_t from,
                     const TensorView& y) {
  for (std::size_t i = from; i < nodes.size(); ++i) {
    const KernelNode& node = step.node(nodes[i]);
    if (!touches(node, y.storage)) continue;
    const bool in_place = node.reads == std::vector{y} && node.writes == std::vector{y};
    return in_place && is_activation(node) ? nodes[i] : NodeId();
  }
  return {};
}

}  // namespace

std::vector<SecondRun> second_runs(const StepGraph& step, const std::vector<NodeId>& nodes) {
  std::vector<SecondRun> runs;
  std::vector<NodeId> applied;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (std::ranges::find(applied, nodes[i]) != applied.end()) continue;
    const KernelNode& node = step.node(nodes[i]);
    SecondRun run{nodes[i], {}};
    if (node.kernel == Kernel::batch_norm_forward) {
      run.activation = activation_of(step, nodes, i + 1, node.writes.front());
      if (run.activation.valid()) applied.push_back(run.activation);
    }
    runs.push_back(run);
  }
  return runs;
}

KernelNode node_of(const StepGraph& step, SecondRun run) {
  const KernelNode& first = step.node(run.node);
  if (first.kernel != Kernel::batch_norm_forward) return first;
  KernelNode again = applied(first);
  if (!run.activation.valid()) return again;
  const KernelNode& activation = step.node(run.activation);
  again.attributes = activation.attributes;
  if (activation.kernel == Kernel::relu_forward)
    again.attributes.set("function", std::string("relu"));
  again.flops = again.flops + activation.flops;
  const auto append = [](std::vector<StorageId>& to, const std::vector<StorageId>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  append(again.temporaries, activation.temporaries);
  append(again.holds, activation.holds);
  return again;
}

bool is_made_again(const KernelNode& first, std::size_t write) {
  return first.kernel != Kernel::batch_norm_forward || write == 0;
}

}  // namespace stowage
