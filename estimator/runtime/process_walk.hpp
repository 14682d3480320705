// ProcessWalk: a process, event by event, over any allocator.
//
// What differs between runtimes is their pool: a type with
//
//   allocate(Bytes, NodeId), free(BlockId), statistics(), reset_peaks()   as the allocators have
//                                                  them; for which node, none: before the steps
//   library_missing_at(NodeId) -> optional<MissingLibrary>        before a node of the first step:
//                                                  libraries that it is the first to call are
//                                                  loaded
//   engines(std::size_t node, try_block) -> const vector<Engine>& what a convolution may run with,
//                                                  in the order in which they are tried;
//                                                  try_block(Bytes): allocated and freed again?
//
// and, if it wants to be told, begin_node(NodeId) before a node runs and begin_entry(entry) before
// each allocation: the index of the use that it is for, -1 for a workspace.
//
// O(steps * touches * log blocks).
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "estimator/allocator/block_table.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/runtime/process_replay.hpp"
#include "estimator/runtime/step_events.hpp"

namespace stowage {

/// load() and then run_steps(), once each; the steps only where loading succeeded.
template <typename Pool>
class ProcessWalk {
 public:
  /// `first` and `steady`: what the first step uses and what the later ones do (storage_uses),
  /// without workspaces. All outlive the walk.
  ProcessWalk(const SizedStep& step, const std::vector<RuntimeBuffer>& buffers,
              const std::vector<StorageUse>& first, const std::vector<StorageUse>& steady,
              Pool& pool)
      : step_(step),
        buffers_(buffers),
        first_(first),
        steady_(steady),
        pool_(pool),
        block_(steady.size()),
        previous_(steady.size()) {
    report_.engine.resize(step.engines.size());
  }

  /// In the order of the entries, which is that of the model's modules. A buffer of the runtime
  /// comes with its first use, all others are there from the start.
  bool load() {
    for (std::size_t i = 0; i < first_.size(); ++i) {
      if (!first_[i].whole_step || first_use(i).valid()) continue;
      if (!allocate(NodeId(), i)) return false;
    }
    report_.loaded = peaks();
    return true;
  }

  void run_steps() {
    const auto nodes = static_cast<std::int32_t>(step_.graph->nodes.size());
    const StepEvents first = step_events(first_, steady_, nodes);
    const StepEvents steady = step_events(steady_, steady_, nodes);
    while (report_.steps < most_replayed_steps) {
      const bool is_first = report_.steps == 0;
      const std::int64_t asked = pool_.statistics().device_allocations;
      if (!run_step(is_first ? first : steady)) break;
      report_.steady_reached = !is_first && pool_.statistics().device_allocations == asked;
      if (report_.steady_reached) break;
    }
  }

  [[nodiscard]] ProcessReplay report() && {
    report_.reserved = most_reserved_;
    report_.releases = pool_.statistics().alloc_retries;
    return std::move(report_);
  }

 private:
  [[nodiscard]] AllocatorLevels peaks() const {
    return {pool_.statistics().allocated.peak, pool_.statistics().reserved.peak};
  }

  void fail(NodeId node, const OutOfMemory& out_of_memory) {
    report_.failure = {.node = node, .step = report_.steps, .out_of_memory = out_of_memory};
  }

  void note_reserved() {
    const AllocatorStatistics& statistics = pool_.statistics();
    if (statistics.reserved.current <= most_reserved_) return;
    most_reserved_ = statistics.reserved.current;
    report_.cached_at_peak = statistics.reserved.current - statistics.allocated.current;
  }

  void tell_entry(std::int32_t entry) {
    if constexpr (requires { pool_.begin_entry(entry); }) pool_.begin_entry(entry);
  }

  [[nodiscard]] bool allocate(NodeId node, std::size_t entry) {
    tell_entry(static_cast<std::int32_t>(entry));
    const auto block = pool_.allocate(steady_[entry].bytes, node);
    note_reserved();
    if (!block) {
      fail(node, block.error());
      return false;
    }
    previous_[entry] = block_[entry];
    block_[entry] = *block;
    return true;
  }

  // Buffers are the last entries.
  [[nodiscard]] std::size_t first_buffer() const { return first_.size() - buffers_.size(); }

  [[nodiscard]] NodeId first_use(std::size_t entry) const {
    return entry < first_buffer() ? NodeId() : buffers_[entry - first_buffer()].first_use;
  }

  [[nodiscard]] bool allocate_first_used(NodeId node) {
    for (std::size_t i = first_buffer(); i < first_.size(); ++i) {
      if (first_use(i) == node && !allocate(node, i)) return false;
    }
    return true;
  }

  [[nodiscard]] bool load_libraries(NodeId node) {
    const std::optional<MissingLibrary> missing = pool_.library_missing_at(node);
    if (missing) report_.failure = {.node = node, .step = report_.steps, .library = missing};
    return !missing;
  }

  [[nodiscard]] bool run_step(const StepEvents& events) {
    ++report_.steps;
    pool_.reset_peaks();
    for (std::size_t node = 0; node + 1 < events.first_event.size(); ++node) {
      if (!run_node(node, events)) return false;
    }
    (report_.steps == 1 ? report_.first_step : report_.steady) = peaks();
    if (report_.steps == 1) report_.steady = report_.first_step;
    return true;
  }

  [[nodiscard]] bool run_node(std::size_t node, const StepEvents& events) {
    const NodeId id = NodeId::of(node);
    if constexpr (requires { pool_.begin_node(id); }) pool_.begin_node(id);
    const auto allocations = static_cast<std::size_t>(events.first_event[node]);
    const auto frees = static_cast<std::size_t>(events.first_free[node]);
    const auto end = static_cast<std::size_t>(events.first_event[node + 1]);
    for (std::size_t i = allocations; i < frees; ++i) {
      if (!allocate(id, static_cast<std::size_t>(events.events[i].entry))) return false;
    }
    if (report_.steps == 1 && !(load_libraries(id) && allocate_first_used(id))) return false;
    if (!step_.engines[node].empty() && !run_engine(node)) return false;
    for (std::size_t i = frees; i < end; ++i) {
      const MemoryEvent& event = events.events[i];
      auto& held = event.kind == MemoryEvent::Kind::free ? block_ : previous_;
      pool_.free(held[static_cast<std::size_t>(event.entry)]);
      held[static_cast<std::size_t>(event.entry)] = BlockId();
    }
    return true;
  }

  [[nodiscard]] std::optional<OutOfMemory> refused(Bytes bytes, NodeId node) {
    tell_entry(-1);
    const auto block = pool_.allocate(bytes, node);
    note_reserved();
    if (!block) return block.error();
    pool_.free(*block);
    return std::nullopt;
  }

  // The first engine whose workspace there is room for.
  [[nodiscard]] bool run_engine(std::size_t node) {
    const std::vector<Engine>& engines =
        pool_.engines(node, [&](Bytes bytes) { return !refused(bytes, NodeId::of(node)); });
    for (std::size_t i = 0; i < engines.size(); ++i) {
      const std::optional<OutOfMemory> no_room = refused(engines[i].workspace, NodeId::of(node));
      if (!no_room) {
        const auto known =
            std::ranges::find(step_.engines[node].list(), engines[i].workspace, &Engine::workspace);
        report_.engine[node] = static_cast<int>(known - step_.engines[node].list().begin());
        return true;
      }
      if (i + 1 == engines.size()) fail(NodeId::of(node), *no_room);
    }
    return false;
  }

  const SizedStep& step_;
  const std::vector<RuntimeBuffer>& buffers_;
  const std::vector<StorageUse>& first_;
  const std::vector<StorageUse>& steady_;
  Pool& pool_;
  std::vector<BlockId> block_, previous_;  // by entry
  Bytes most_reserved_;
  ProcessReplay report_;
};

}  // namespace stowage
