#include "estimator/memory/partition.hpp"

#include <algorithm>

namespace stowage {

namespace {

/// Of the parameters that train: elements and bytes as they and their gradients are held.
struct Trained {
  std::int64_t elements = 0;
  Bytes parameters, gradients;
};

Trained trained(const StepGraph& graph) {
  Trained sum;
  for (const TensorView& gradient : graph.gradients) {
    if (!gradient.storage.valid()) continue;
    const std::int64_t elements = element_count(gradient.shape).at(1);
    sum.elements += elements;
    sum.gradients += elements * Bytes(element_size(gradient.type));
  }
  for (const Storage& storage : graph.storages) {
    if (storage.storage_class == StorageClass::parameter) {
      sum.parameters += Bytes(storage.bytes.at(1));
    }
  }
  return sum;
}

/// Bytes of at most `most` elements of `elements` that take `bytes` together.
Bytes at_most(std::int64_t most, std::int64_t elements, Bytes bytes) {
  if (elements <= most) return bytes;
  const double part = static_cast<double>(most) / static_cast<double>(elements);
  return Bytes(static_cast<std::int64_t>(part * static_cast<double>(bytes.count())));
}

bool shared_class(const Storage& storage, const DataParallel& parallel) {
  switch (storage.storage_class) {
    case StorageClass::optimizer_state:
      return parallel.shares_state();
    case StorageClass::gradient:
      return parallel.shares_gradients();
    case StorageClass::parameter:
      // The smallest formats have two bytes an element.
      return parallel.shares_parameters() && storage.bytes.at(1) >= 2 * zero_persistence_threshold;
    default:
      return false;
  }
}

}  // namespace

std::vector<bool> shared_out(const StepGraph& graph) {
  const DataParallel& parallel = graph.settings.parallel;
  std::vector<bool> shared(graph.storages.size(), false);
  if (!parallel.shares_state()) return shared;
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    shared[i] = shared_class(graph.storages[i], parallel);
  }
  for (const KernelNode& node : graph.nodes) {
    if (node.phase != Phase::update) continue;
    for (const StorageId id : node.temporaries) shared[id.index()] = true;
    for (const TensorView& view : node.writes) {
      if (graph.storage(view.storage).storage_class == StorageClass::temporary) {
        shared[view.storage.index()] = true;
      }
    }
  }
  return shared;
}

Bytes share_of(Bytes whole, const StepGraph& graph) {
  const std::int64_t gpus = graph.settings.parallel.gpus;
  return Bytes((whole.count() + gpus - 1) / gpus);
}

std::vector<RuntimeBuffer> parallel_buffers(const StepGraph& graph) {
  const DataParallel& parallel = graph.settings.parallel;
  if (!parallel.is_parallel() || parallel.fsdp.on || graph.settings.mode != Mode::train) return {};
  const Trained sum = trained(graph);
  if (!parallel.shares_state()) {
    return {{.name = "DDP's gradient buckets",
             .bytes = sum.gradients,
             .storage_class = StorageClass::gradient}};
  }
  std::vector<RuntimeBuffer> buffers{
      {.name = "ZeRO's reduction buffer",
       .bytes = at_most(zero_reduce_bucket_elements, sum.elements, sum.gradients),
       .storage_class = StorageClass::gradient}};
  if (graph.settings.optimizer.master_weights == MasterWeights::none) {
    buffers.push_back({.name = "DeepSpeed's copy of its share of the parameters",
                       .bytes = share_of(Bytes(4 * sum.elements), graph),
                       .storage_class = StorageClass::optimizer_state});
  }
  if (parallel.shares_parameters()) {
    buffers.push_back({.name = "gathered parameters",
                       .bytes = at_most(zero_max_live_parameters, sum.elements, sum.parameters),
                       .storage_class = StorageClass::parameter});
  }
  return buffers;
}

}  // namespace stowage
