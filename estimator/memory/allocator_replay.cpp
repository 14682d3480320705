#include "estimator/memory/allocator_replay.hpp"

#include <algorithm>
#include <map>

#include "estimator/allocator/caching_allocator.hpp"
#include "estimator/memory/benchmark.hpp"
#include "estimator/memory/step_events.hpp"

namespace stowage {

namespace {

class Process {
 public:
  Process(const SizedStep& step, const std::vector<Touches>& touches,
          const ReplaySettings& settings)
      : step_(step),
        first_(memory_of(touches, settings, StepNumber::first)),
        steady_(memory_of(touches, settings, StepNumber::steady)),
        device_(settings.limit),
        allocator_(settings.allocator, device_),
        block_(steady_.entries.size()),
        previous_(steady_.entries.size()) {
    report_.engine.resize(step.engines.size());
  }

  ProcessReplay run() && {
    if (load()) {
      const StepEvents first = step_events(first_, steady_);
      const StepEvents steady = step_events(steady_, steady_);
      while (report_.steps < most_replayed_steps) {
        const bool is_first = report_.steps == 0;
        const std::int64_t asked = allocator_.statistics().device_allocations;
        if (!run_step(is_first ? first : steady)) break;
        if (!is_first && allocator_.statistics().device_allocations == asked) break;
      }
    }
    report_.reserved = most_reserved_;
    report_.releases = allocator_.statistics().alloc_retries;
    return std::move(report_);
  }

 private:
  [[nodiscard]] StepMemory memory_of(const std::vector<Touches>& touches,
                                     const ReplaySettings& settings, StepNumber number) const {
    return step_memory(
        step_, {.step = number, .buffers = settings.buffers, .with_workspaces = false}, touches);
  }

  [[nodiscard]] AllocatorLevels peaks() const {
    const AllocatorStatistics& statistics = allocator_.statistics();
    return {statistics.allocated.peak, statistics.reserved.peak};
  }

  void fail(NodeId node, const OutOfMemory& out_of_memory) {
    report_.failure = {node, report_.steps, out_of_memory};
  }

  void note_reserved() {
    const AllocatorStatistics& statistics = allocator_.statistics();
    if (statistics.reserved.current <= most_reserved_) return;
    most_reserved_ = statistics.reserved.current;
    report_.cached_at_peak = statistics.reserved.current - statistics.allocated.current;
  }

  [[nodiscard]] bool allocate(NodeId node, std::size_t entry) {
    const auto block = allocator_.allocate(steady_.uses[entry].bytes);
    note_reserved();
    if (!block) {
      fail(node, block.error());
      return false;
    }
    previous_[entry] = block_[entry];
    block_[entry] = *block;
    return true;
  }

  // In the order of the entries, which is that of the model's modules. A buffer of the runtime
  // comes with its first use, all others are there from the start.
  [[nodiscard]] bool load() {
    for (std::size_t i = 0; i < first_.uses.size(); ++i) {
      if (!first_.uses[i].whole_step || first_use(i).valid()) continue;
      if (!allocate(NodeId(), i)) return false;
    }
    report_.loaded = peaks();
    return true;
  }

  [[nodiscard]] NodeId first_use(std::size_t entry) const {
    const std::int32_t buffer = first_.entries[entry].buffer;
    if (buffer < 0) return {};
    return first_.buffers[static_cast<std::size_t>(buffer)].first_use;
  }

  [[nodiscard]] bool allocate_first_used(NodeId node) {
    // Buffers are the last entries.
    for (std::size_t i = first_.entries.size() - first_.buffers.size(); i < first_.entries.size();
         ++i) {
      if (first_use(i) == node && !allocate(node, i)) return false;
    }
    return true;
  }

  [[nodiscard]] bool run_step(const StepEvents& events) {
    ++report_.steps;
    allocator_.reset_peaks();
    for (std::size_t node = 0; node + 1 < events.first_event.size(); ++node) {
      if (!run_node(node, events)) return false;
    }
    (report_.steps == 1 ? report_.first_step : report_.steady) = peaks();
    if (report_.steps == 1) report_.steady = report_.first_step;
    return true;
  }

  [[nodiscard]] bool run_node(std::size_t node, const StepEvents& events) {
    const auto allocations = static_cast<std::size_t>(events.first_event[node]);
    const auto frees = static_cast<std::size_t>(events.first_free[node]);
    const auto end = static_cast<std::size_t>(events.first_event[node + 1]);
    for (std::size_t i = allocations; i < frees; ++i) {
      if (!allocate(NodeId::of(node), static_cast<std::size_t>(events.events[i].entry))) {
        return false;
      }
    }
    if (report_.steps == 1 && !allocate_first_used(NodeId::of(node))) return false;
    if (!step_.engines[node].empty() && !run_engine(node, engines_of(node))) return false;
    for (std::size_t i = frees; i < end; ++i) {
      const MemoryEvent& event = events.events[i];
      auto& held = event.kind == MemoryEvent::Kind::free ? block_ : previous_;
      allocator_.free(held[static_cast<std::size_t>(event.entry)]);
      held[static_cast<std::size_t>(event.entry)] = BlockId();
    }
    return true;
  }

  // With cudnn.benchmark those that a timing could choose, which a convolution's first call makes.
  [[nodiscard]] const std::vector<Engine>& engines_of(std::size_t node) {
    if (step_.benchmark.empty() || step_.benchmark[node].empty()) return step_.engines[node].list();
    const auto [timed, is_new] =
        timed_.try_emplace(convolution_query(*step_.graph, step_.graph->nodes[node], step_.batch));
    if (is_new) timed->second = time_plans(step_.benchmark[node].list());
    return timed->second.empty() ? step_.engines[node].list() : timed->second;
  }

  [[nodiscard]] std::vector<Engine> time_plans(const std::vector<Engine>& plans) {
    Bytes available = std::max(device_.free(), allocator_.largest_cached_block());
    while (true) {
      BenchmarkOutcome outcome = benchmark_outcome(plans, available);
      const auto block = allocator_.allocate(outcome.buffer);
      note_reserved();
      if (block) {
        allocator_.free(*block);
        return std::move(outcome.winners);
      }
      available = Bytes(outcome.buffer.count() / 2);
    }
  }

  // The first engine whose workspace there is room for.
  [[nodiscard]] bool run_engine(std::size_t node, const std::vector<Engine>& engines) {
    for (std::size_t i = 0; i < engines.size(); ++i) {
      const auto block = allocator_.allocate(engines[i].workspace);
      note_reserved();
      if (block) {
        allocator_.free(*block);
        const auto known =
            std::ranges::find(step_.engines[node].list(), engines[i].workspace, &Engine::workspace);
        report_.engine[node] = static_cast<int>(known - step_.engines[node].list().begin());
        return true;
      }
      if (i + 1 == engines.size()) fail(NodeId::of(node), block.error());
    }
    return false;
  }

  const SizedStep& step_;
  StepMemory first_, steady_;
  DeviceMemory device_;
  CachingAllocator allocator_;
  std::vector<BlockId> block_, previous_;  // by entry
  std::map<ConvolutionQuery, std::vector<Engine>> timed_;
  Bytes most_reserved_;
  ProcessReplay report_;
};

}  // namespace

ProcessReplay replay_process(const SizedStep& step, const std::vector<Touches>& touches,
                             const ReplaySettings& settings) {
  return Process(step, touches, settings).run();
}

}  // namespace stowage
