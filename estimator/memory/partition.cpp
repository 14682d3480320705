#include "estimator/memory/partition.hpp"

#include <algorithm>
#include <bit>

namespace stowage {

namespace {

constexpr std::int64_t fp32_bytes = 4;

/// Of the parameters that train: elements and bytes as they and their gradients are held.
struct Trained {
  std::int64_t elements = 0, largest = 0;
  Bytes parameters, gradients;

  /// Of a parameter's format.
  [[nodiscard]] std::int64_t element_bytes() const {
    return elements == 0 ? 0 : parameters.count() / elements;
  }
};

Trained trained(const StepGraph& graph) {
  Trained sum;
  for (const Storage& storage : graph.storages) {
    if (storage.storage_class != StorageClass::parameter) continue;
    const TensorView& gradient = graph.gradients[storage.parameter.index()];
    if (!gradient.storage.valid()) continue;
    const std::int64_t elements = element_count(gradient.shape).at(1);
    sum.elements += elements;
    sum.largest = std::max(sum.largest, elements);
    sum.gradients += elements * Bytes(element_size(gradient.type));
    sum.parameters += Bytes(storage.bytes.at(1));
  }
  return sum;
}

std::int64_t share(std::int64_t whole, const StepGraph& graph) {
  const std::int64_t gpus = graph.settings.parallel.gpus;
  return (whole + gpus - 1) / gpus;
}

/// Elements of a share that the optimizer works on at once.
std::int64_t updated_at_once(const Trained& sum, const StepGraph& graph) {
  const std::int64_t own = share(sum.elements, graph);
  return graph.settings.parallel.shares_parameters() ? std::min(own, zero_sub_group_elements) : own;
}

bool shared_class(const Storage& storage, const DataParallel& parallel) {
  switch (storage.storage_class) {
    case StorageClass::optimizer_state:
      return parallel.shares_state();
    case StorageClass::parameter:
      // The smallest formats have two bytes an element.
      return parallel.shares_parameters() && storage.bytes.at(1) >= 2 * zero_persistence_threshold;
    default:
      return false;
  }
}

/// DeepSpeed's buffers of the optimizer's side.
void add_update_buffers(const StepGraph& graph, const Trained& sum,
                        std::vector<RuntimeBuffer>& buffers) {
  const DataParallel& parallel = graph.settings.parallel;
  if (parallel.offloads_optimizer()) {
    if (parallel.shares_parameters()) return;
    buffers.push_back({.name = "gradient on its way to the CPU",
                       .bytes = Bytes(sum.largest * sum.element_bytes()),
                       .storage_class = StorageClass::gradient});
    return;
  }
  buffers.push_back({.name = "flat fp32 gradients of its share",
                     .bytes = Bytes(fp32_bytes * updated_at_once(sum, graph)),
                     .storage_class = StorageClass::gradient,
                     .during = PhaseRange{Phase::update, Phase::update}});
  // Stage 3 updates fp32 parameters in their place.
  if (graph.settings.optimizer.master_weights == MasterWeights::none &&
      !parallel.shares_parameters()) {
    buffers.push_back({.name = "DeepSpeed's copy of its share of the parameters",
                       .bytes = Bytes(fp32_bytes * share(sum.elements, graph)),
                       .storage_class = StorageClass::optimizer_state});
  }
}

/// `bytes` of page-locked memory in tensors of at most `most` bytes each.
std::int64_t pinned_in(std::int64_t bytes, std::int64_t most) {
  const auto taken = [](std::int64_t size) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
  };
  const std::int64_t rest = bytes % most;
  return bytes / most * taken(most) + (rest > 0 ? taken(rest) : 0);
}

}  // namespace

std::vector<bool> parameter_gradients(const StepGraph& graph) {
  std::vector<bool> of_parameter;
  of_parameter.reserve(graph.storages.size());
  for (const Storage& storage : graph.storages) {
    of_parameter.push_back(storage.storage_class == StorageClass::gradient);
  }
  for (const TensorView& gradient : graph.gradients) {
    if (gradient.storage.valid()) of_parameter[gradient.storage.index()] = true;
  }
  return of_parameter;
}

std::vector<bool> shared_out(const StepGraph& graph) {
  const DataParallel& parallel = graph.settings.parallel;
  if (!parallel.shares_state()) return std::vector<bool>(graph.storages.size(), false);
  std::vector<bool> shared = parameter_gradients(graph);
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    shared[i] = shared[i] ? parallel.shares_gradients() : shared_class(graph.storages[i], parallel);
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

Bytes kept_of(const Storage& storage, Bytes whole, const StepGraph& graph) {
  const DataParallel& parallel = graph.settings.parallel;
  const std::int64_t own = share(whole.count(), graph);
  switch (storage.storage_class) {
    case StorageClass::parameter:
      return parallel.offloads_parameters() ? 0_B : Bytes(own);
    case StorageClass::temporary:
      break;
    default:  // gradients and state
      return parallel.offloads_optimizer() ? 0_B : Bytes(own);
  }
  if (parallel.offloads_optimizer()) return 0_B;
  // A temporary of the update has at most 8 bytes an element: of one sub-group, where there are
  // several.
  if (parallel.shares_parameters()) {
    return Bytes(std::min(own, 2 * fp32_bytes * zero_sub_group_elements));
  }
  return Bytes(own);
}

std::vector<RuntimeBuffer> parallel_buffers(const StepGraph& graph) {
  const DataParallel& parallel = graph.settings.parallel;
  const bool replicates = parallel.is_parallel() && !parallel.fsdp.on;
  if (graph.settings.mode != Mode::train || !(replicates || parallel.runs_zero())) return {};
  const Trained sum = trained(graph);
  if (!parallel.shares_state()) {
    return {{.name = "DDP's gradient buckets",
             .bytes = sum.gradients,
             .storage_class = StorageClass::gradient}};
  }
  RuntimeBuffer reduction{.name = "ZeRO's reduction buffer",
                          .bytes = Bytes(zero_reduce_bucket_elements * sum.element_bytes()),
                          .storage_class = StorageClass::gradient};
  if (!parallel.shares_parameters())
    reduction.during = PhaseRange{Phase::backward, Phase::backward};
  std::vector<RuntimeBuffer> buffers{std::move(reduction)};
  add_update_buffers(graph, sum, buffers);
  if (parallel.shares_parameters()) {
    buffers.push_back(
        {.name = "gradients as they are reduced",
         .bytes = Bytes(std::min(zero_reduce_bucket_elements, sum.elements) * sum.element_bytes()),
         .storage_class = StorageClass::gradient,
         .during = PhaseRange{Phase::backward, Phase::backward}});
    buffers.push_back(
        {.name = "gathered parameters",
         .bytes = Bytes(std::min(zero_max_live_parameters, sum.elements) * sum.element_bytes()),
         .storage_class = StorageClass::parameter,
         .during = PhaseRange{Phase::forward, Phase::backward}});
  }
  return buffers;
}

std::vector<HostBuffer> host_buffers(const StepGraph& graph) {
  const DataParallel& parallel = graph.settings.parallel;
  if (parallel.fsdp.on || !parallel.shares_state()) return graph.host_buffers;
  if (parallel.offload == Offload::none) return {};
  const Trained sum = trained(graph);
  const std::int64_t own = share(sum.elements, graph);
  const std::int64_t at_once = std::max<std::int64_t>(updated_at_once(sum, graph), 1);
  std::vector<HostBuffer> buffers;
  const auto add = [&](std::string name, std::int64_t elements, std::int64_t element_bytes) {
    const std::int64_t bytes = elements * element_bytes;
    // Stage 3 has a tensor for each sub-group.
    const std::int64_t most =
        parallel.shares_parameters() ? at_once * element_bytes : std::max<std::int64_t>(bytes, 1);
    const std::int64_t taken = parallel.pinned ? pinned_in(bytes, most) : bytes;
    buffers.push_back({.name = std::move(name), .bytes = taken, .pinned = parallel.pinned});
  };
  if (parallel.offloads_parameters()) {
    add("parameters of its share", share(sum.elements, graph), sum.element_bytes());
  }
  if (!parallel.offloads_optimizer()) return buffers;
  add("fp32 master weights", own, fp32_bytes);
  add("fp32 gradients", own, fp32_bytes);
  if (parallel.shares_parameters()) {
    add("gradients of its share", own, sum.element_bytes());
  } else {
    add("updated parameters on their way back", own, sum.element_bytes());
    add("gradient on its way", sum.largest, sum.element_bytes());
  }
  std::int64_t state = 0;
  for (const Storage& storage : graph.storages) {
    if (storage.storage_class != StorageClass::optimizer_state) continue;
    if (storage.name.ends_with(".master")) continue;  // counted above
    state += share(storage.bytes.at(1), graph);
  }
  if (state > 0) buffers.push_back({.name = "optimizer state", .bytes = state});
  return buffers;
}

}  // namespace stowage
