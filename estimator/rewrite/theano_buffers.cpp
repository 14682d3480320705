#include "estimator/rewrite/theano_buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/node_order.hpp"
#include "estimator/step/node_dependences.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t float_mask = 4;  // bytes of floatX beside one of ours

bool is_filter(const StepGraph& step, const TensorView& view) {
  return step.storage(view.storage).storage_class == StorageClass::parameter &&
         view.shape.size() > 2;
}

/// The contiguous copies that convolutions read, each made before its first reader.
class ContiguousCopies {
 public:
  ContiguousCopies(StepGraph& step, bool images) : step_(step), images_(images) {}

  void add() {
    NodeInsertion nodes;
    for (KernelNode& node : step_.nodes) {
      if (node.convolution >= 0) {
        for (TensorView& view : node.reads) {
          if (is_filter(step_, view) || (images_ && view.shape.size() > 2)) {
            view = copy_of(view, node, nodes);
          }
        }
      }
      nodes.keep(std::move(node));
    }
    const NodeId first = step_.micro_batch.first_node;
    std::move(nodes).put_into(step_);
    if (first.index() == 0) step_.micro_batch.first_node = first;  // with the first one's copies
  }

 private:
  TensorView copy_of(const TensorView& view, const KernelNode& reader, NodeInsertion& nodes) {
    const auto [found, is_new] = copies_.try_emplace(view.storage, view);
    if (!is_new) return found->second;
    const Storage& original = step_.storage(view.storage);
    const std::string name = original.name + ".contiguous";
    step_.storages.push_back({.name = name,
                              .storage_class = StorageClass::activation,
                              .bytes = original.bytes,
                              .op = reader.op});
    found->second.storage = StorageId::of(step_.storages.size() - 1);
    nodes.insert({.name = name,
                  .kernel = Kernel::copy,
                  .phase = reader.phase,
                  .op = reader.op,
                  .reads = {view},
                  .writes = {found->second}});
    return found->second;
  }

  StepGraph& step_;
  bool images_;
  std::map<StorageId, TensorView> copies_;
};

bool reads_its_input_again(const KernelNode& node) {
  if (node.kernel == Kernel::relu_forward) return true;
  if (node.kernel != Kernel::unary_forward) return false;
  return node.attributes.text("function") == "relu6";
}

void keep_what_rectifiers_read(StepGraph& step) {
  std::map<OperatorId, std::vector<StorageId>> read;
  for (const KernelNode& node : step.nodes) {
    if (reads_its_input_again(node)) read[node.op].push_back(node.reads.front().storage);
  }
  for (KernelNode& node : step.nodes) {
    const auto found = read.find(node.op);
    if (node.phase != Phase::backward || found == read.end()) continue;
    node.holds.insert(node.holds.end(), found->second.begin(), found->second.end());
    std::ranges::sort(node.holds);
    node.holds.erase(std::unique(node.holds.begin(), node.holds.end()), node.holds.end());
  }
}

void widen_masks(StepGraph& step) {
  for (const KernelNode& node : step.nodes) {
    if (node.kernel != Kernel::dropout_forward && node.kernel != Kernel::feature_dropout_forward) {
      continue;
    }
    Storage& mask = step.storages[node.writes.back().storage.index()];
    mask.bytes = mask.bytes * Affine(float_mask);
  }
}

void add_moments(StepGraph& step) {
  const bool has_none =
      step.settings.optimizer.name == "sgd" && step.settings.optimizer.momentum == 0;
  if (!has_none || step.settings.mode != Mode::train) return;
  const std::size_t count = step.storages.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Storage parameter = step.storages[i];
    if (parameter.storage_class != StorageClass::parameter || !parameter.carries_over) continue;
    step.storages.push_back({.name = parameter.name + ".moment",
                             .storage_class = StorageClass::optimizer_state,
                             .persistence = Persistence::persistent,
                             .bytes = parameter.bytes,
                             .op = parameter.op,
                             .parameter = parameter.parameter,
                             .carries_over = true,
                             .before_first_step = true});
    for (KernelNode& node : step.nodes) {
      const bool updates = node.phase == Phase::update && !node.writes.empty() &&
                           node.writes.front().storage == StorageId::of(i);
      if (updates) node.holds.push_back(StorageId::of(step.storages.size() - 1));
    }
  }
}

/// First in, first out: each node runs when all nodes that it depends on have run.
std::vector<std::int32_t> first_come_order(const StepGraph& step) {
  const std::vector<std::vector<std::int32_t>> before = node_dependences(step);
  std::vector<std::vector<std::int32_t>> readers(step.nodes.size());
  std::vector<std::size_t> missing;
  std::vector<std::int32_t> order;
  for (std::size_t i = 0; i < before.size(); ++i) {
    missing.push_back(before[i].size());
    for (const std::int32_t needed : before[i]) {
      readers[static_cast<std::size_t>(needed)].push_back(static_cast<std::int32_t>(i));
    }
    if (before[i].empty()) order.push_back(static_cast<std::int32_t>(i));
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::int32_t reader : readers[static_cast<std::size_t>(order[next])]) {
      if (--missing[static_cast<std::size_t>(reader)] == 0) order.push_back(reader);
    }
  }
  return order;
}

void keep_all_results(StepGraph& step) {
  if (step.nodes.empty()) return;
  std::vector<StorageId>& holds = step.nodes.back().holds;
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    if (step.storages[i].persistence == Persistence::transient) holds.push_back(StorageId::of(i));
  }
  std::ranges::sort(holds);
  holds.erase(std::unique(holds.begin(), holds.end()), holds.end());
}

}  // namespace

Result<StepGraph> with_theano_buffers(StepGraph step, const TheanoBuffers& buffers) {
  ContiguousCopies(step, buffers.channels_last).add();
  keep_what_rectifiers_read(step);
  widen_masks(step);
  add_moments(step);
  std::vector<NodeRun> order = runs_of_order(step, first_come_order(step));
  auto ordered = with_order(std::move(step), std::move(order));
  if (ordered && buffers.keeps_intermediates) keep_all_results(*ordered);
  return ordered;
}

}  // namespace stowage
