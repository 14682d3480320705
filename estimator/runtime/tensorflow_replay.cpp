#include "estimator/runtime/tensorflow_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>
#include <set>

#include "estimator/runtime/process_walk.hpp"

namespace stowage {

namespace {

constexpr Bytes none{-1};

// RedzoneAllocator::kDefaultRedzoneSize on either side (stream_executor/gpu/redzone_allocator.h).
constexpr Bytes redzones{std::int64_t{2} * (8 << 20)};

/// cuBLAS and cuDNN on the card: each is taken once, however many replicas call it.
class Libraries {
 public:
  Libraries(const std::vector<LibraryLoad>& loads, DeviceMemory& device) : device_(device) {
    for (const LibraryLoad& load : loads) missing_.push_back({load, device.add_holder(load.name)});
  }

  /// Takes those that `node` calls; the first that finds no room.
  std::optional<MissingLibrary> take(NodeId node) {
    for (Pending& pending : missing_) {
      if (pending.taken || pending.load.first_use != node) continue;
      pending.taken = device_.take(pending.holder, pending.load.bytes);
      if (!pending.taken) return MissingLibrary{pending.load, device_.free()};
    }
    return std::nullopt;
  }

 private:
  struct Pending {
    LibraryLoad load;
    HolderId holder;
    bool taken = false;
  };
  DeviceMemory& device_;
  std::vector<Pending> missing_;
};

/// A logical device as process_walk.hpp wants a pool.
class TensorFlowPool {
 public:
  TensorFlowPool(const SizedStep& step, BfcAllocator& allocator, Libraries& libraries)
      : step_(step), allocator_(allocator), libraries_(libraries) {}

  [[nodiscard]] auto allocate(Bytes bytes, NodeId) { return allocator_.allocate(bytes); }
  void free(BlockId id) { allocator_.free(id); }
  [[nodiscard]] const AllocatorStatistics& statistics() const { return allocator_.statistics(); }
  void reset_peaks() { allocator_.reset_peaks(); }
  [[nodiscard]] std::optional<MissingLibrary> library_missing_at(NodeId node) {
    return libraries_.take(node);
  }
  template <typename TryBlock>
  [[nodiscard]] const std::vector<Engine>& engines(std::size_t node, TryBlock try_block) {
    const std::vector<Engine>& candidates = step_.engines[node].list();
    const ConvolutionQuery query =
        convolution_query(*step_.graph, step_.graph->nodes[node], step_.batch);
    if (timed_.insert(query).second)
      time(candidates, bytes_of(result_shape(query), query.type), try_block);
    return candidates;
  }

 private:
  // As far as there is room: without it the copy is left out, and so is a candidate.
  template <typename TryBlock>
  void time(const std::vector<Engine>& candidates, Bytes result, TryBlock try_block) {
    const auto copy = allocator_.allocate(result + redzones);
    for (const Engine& candidate : candidates) {
      if (candidate.workspace > Bytes()) (void)try_block(candidate.workspace + redzones);
    }
    if (copy) allocator_.free(*copy);
  }

  const SizedStep& step_;
  BfcAllocator& allocator_;
  Libraries& libraries_;
  std::set<ConvolutionQuery> timed_;
};

using Walk = ProcessWalk<TensorFlowPool>;

// All replicas are loaded before the first of them runs.
std::vector<ProcessReplay> run(std::vector<Walk>& walks) {
  std::vector<ProcessReplay> replicas;
  const bool loaded = std::ranges::all_of(walks, [](Walk& walk) { return walk.load(); });
  for (Walk& walk : walks) {
    if (loaded) walk.run_steps();
    replicas.push_back(std::move(walk).report());
    if (!replicas.back().completed()) break;
  }
  return replicas;
}

ProcessReplay without_context(const TensorFlowCard& card, const DeviceMemory& device) {
  ProcessReplay replay;
  replay.failure = {.library = MissingLibrary{{"CUDA", card.context, {}}, device.free()}};
  return replay;
}

std::string library_message(const MissingLibrary& missing) {
  const std::string& name = missing.library.name;
  std::string_view text = "failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY: out of memory";
  if (name == "cuBLAS") text = "failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED";
  if (name == "cuDNN") text = "Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR";
  return fmt::format("{} ({} wants {}, and {} are left)", text, name,
                     format_bytes(missing.library.bytes), format_bytes(missing.free));
}

}  // namespace

const ProcessReplay::Failure* TensorFlowReplay::failure() const {
  for (const ProcessReplay& replica : replicas) {
    if (replica.failure) return &*replica.failure;
  }
  return nullptr;
}

Bytes TensorFlowReplay::pools() const {
  Bytes bytes;
  for (const ProcessReplay& replica : replicas) bytes += replica.reserved;
  return bytes;
}

TensorFlowReplay replay_tensorflow(const SizedStep& step, const std::vector<Touches>& touches,
                                   const std::vector<RuntimeBuffer>& buffers,
                                   const std::vector<LibraryLoad>& libraries,
                                   const TensorFlowCard& card, const TensorFlowMemory& memory) {
  DeviceMemory device(card.total, std::min(card.in_use, card.total));
  TensorFlowReplay replay;
  if (!device.take(device.add_holder("CUDA context"), card.context)) {
    replay.replicas.push_back(without_context(card, device));
    return replay;
  }
  const std::vector<StorageUse> uses =
      storage_uses(step, {.buffers = buffers, .with_workspaces = false}, touches);
  const auto allocators = tensorflow_allocators(memory, device, card.compute_capability_major);
  Libraries taken(libraries, device);
  std::vector<TensorFlowPool> pools;
  for (const auto& allocator : allocators) {
    replay.limits.push_back(allocator->memory_limit());
    pools.emplace_back(step, *allocator, taken);
  }
  std::vector<Walk> walks;
  for (TensorFlowPool& pool : pools) walks.emplace_back(step, buffers, uses, uses, pool);
  replay.replicas = run(walks);
  return replay;
}

Bytes tensorflow_room(const std::vector<LibraryLoad>& libraries, const TensorFlowCard& card,
                      const TensorFlowMemory& memory) {
  DeviceMemory device(card.total, std::min(card.in_use, card.total));
  if (!device.take(device.add_holder("CUDA context"), card.context)) return none;
  const auto allocators = tensorflow_allocators(memory, device, card.compute_capability_major);
  const HolderId libraries_holder = device.add_holder("libraries");
  const auto take_libraries = [&] {
    return std::ranges::all_of(libraries, [&](const LibraryLoad& library) {
      return device.take(libraries_holder, library.bytes);
    });
  };
  if (memory.allow_growth) {
    if (!take_libraries()) return none;
    return std::min(allocators.front()->memory_limit(), device.free());
  }
  for (const auto& allocator : allocators) {
    const auto chunk = allocator->allocate(1_B);
    if (!chunk) return none;
  }
  if (!take_libraries()) return none;
  Bytes least = allocators.front()->statistics().reserved.current;
  for (const auto& allocator : allocators) {
    least = std::min(least, allocator->statistics().reserved.current);
  }
  return least;
}

std::string tensorflow_message(const StepGraph& graph, const ProcessReplay::Failure& failure) {
  const std::string text = failure.library ? library_message(*failure.library)
                                           : tensorflow_message(failure.out_of_memory);
  if (!failure.node.valid()) return fmt::format("before the first step: {}", text);
  return fmt::format("in step {}, while {} runs: {}", failure.step, graph.node(failure.node).name,
                     text);
}

}  // namespace stowage
