#include "estimator/runtime/allocator_replay.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <optional>

#include "estimator/allocator/caching_allocator.hpp"
#include "estimator/runtime/allocator_trace.hpp"
#include "estimator/runtime/process_walk.hpp"
#include "estimator/workspace/benchmark.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_streams = 64;

/// The attribute `stream` (step-file.md), which a step's file may give any value.
StreamId stream_of(const KernelNode& node) {
  for (const auto& [name, value] : node.attributes.entries()) {
    const auto* stream = name == "stream" ? std::get_if<std::int64_t>(&value) : nullptr;
    if (stream != nullptr && *stream > 0 && *stream <= most_streams) {
      return StreamId::of(static_cast<std::size_t>(*stream));
    }
  }
  return default_stream;
}

/// By NodeId: a node is asked for as often as it allocates something, step after step.
std::vector<StreamId> streams_of(const StepGraph& graph) {
  std::vector<StreamId> streams;
  streams.reserve(graph.nodes.size());
  for (const KernelNode& node : graph.nodes) streams.push_back(stream_of(node));
  return streams;
}

/// PyTorch's allocator as process_walk.hpp wants a pool. Its libraries are not on this device:
/// the limit is what they leave.
class PyTorchPool {
 public:
  /// `entries`: of a step.
  PyTorchPool(const SizedStep& step, std::size_t entries, const ReplaySettings& settings)
      : step_(step),
        settings_(settings.allocator),
        streams_(streams_of(*step.graph)),
        device_(settings.limit + round_up(settings.outside, device_page) + settings.others,
                settings.others),
        allocator_(settings.allocator, device_) {
    [[maybe_unused]] const bool taken =
        device_.take(device_.add_holder("context and libraries"), settings.outside);
    assert(taken);
    beside_ = device_.used();
    allocator_.expect(entries);
  }

  [[nodiscard]] auto allocate(Bytes bytes, NodeId node) {
    return allocator_.allocate(bytes, stream_of_node(node));
  }
  void free(BlockId id) { allocator_.free(id); }
  [[nodiscard]] const AllocatorStatistics& statistics() const { return allocator_.statistics(); }
  [[nodiscard]] const CachingAllocator& allocator() const { return allocator_; }
  [[nodiscard]] StreamId stream_of_node(NodeId node) const {
    return node.valid() ? streams_[node.index()] : default_stream;
  }
  void reset_peaks() { allocator_.reset_peaks(); }
  /// Limits under which the driver answers each request as it did.
  [[nodiscard]] LimitRange same_limits() const {
    LimitRange range{.from = device_.peak_used() - beside_};
    if (const auto refused = device_.least_refused()) range.end = *refused - beside_;
    return range;
  }
  [[nodiscard]] std::map<std::size_t, WorkspaceRange> same_workspaces() && {
    return std::move(same_workspaces_);
  }
  [[nodiscard]] static std::optional<MissingLibrary> library_missing_at(NodeId) { return {}; }

  // With cudnn.benchmark those that a timing could choose, which a convolution's first call makes.
  template <typename TryBlock>
  [[nodiscard]] const std::vector<Engine>& engines(std::size_t node, TryBlock try_block) {
    const Engines& engines = step_.engines[node];
    if (engines.size() == 1 && engines.front().workspace > 0_B) {
      const StreamId stream = streams_[node];
      same_workspaces_[node].note(engines.front().workspace,
                                  {allocator_.largest_cached_block(BlockPool::small, stream),
                                   allocator_.largest_cached_block(BlockPool::large, stream)},
                                  settings_);
    }
    if (step_.benchmark.empty() || step_.benchmark[node].empty()) return engines.list();
    const auto [timed, is_new] =
        timed_.try_emplace(convolution_query(*step_.graph, step_.graph->nodes[node], step_.batch));
    if (is_new) timed->second = time_plans(step_.benchmark[node].list(), try_block);
    return timed->second.empty() ? step_.engines[node].list() : timed->second;
  }

 private:
  template <typename TryBlock>
  [[nodiscard]] std::vector<Engine> time_plans(const std::vector<Engine>& plans,
                                               TryBlock try_block) {
    Bytes available = std::max(device_.free(), allocator_.largest_cached_block());
    while (true) {
      BenchmarkOutcome outcome = benchmark_outcome(plans, available);
      if (try_block(outcome.buffer)) return std::move(outcome.winners);
      available = Bytes(outcome.buffer.count() / 2);
    }
  }

  const SizedStep& step_;
  const AllocatorSettings& settings_;
  std::vector<StreamId> streams_;
  DeviceMemory device_;
  CachingAllocator allocator_;
  Bytes beside_;  // used of the device before the allocator has any
  std::map<ConvolutionQuery, std::vector<Engine>> timed_;
  std::map<std::size_t, WorkspaceRange> same_workspaces_;
};

/// A pool that also notes, by node of the step that runs, the most that it holds of the driver.
class NotingPool : public PyTorchPool {
 public:
  NotingPool(const SizedStep& step, std::size_t entries, const ReplaySettings& settings)
      : PyTorchPool(step, entries, settings), most_(step.graph->nodes.size()) {}

  [[nodiscard]] auto allocate(Bytes bytes, NodeId node) {
    auto block = PyTorchPool::allocate(bytes, node);
    const Bytes reserved = statistics().reserved.current;
    if (node.valid()) most_[node.index()] = std::max(most_[node.index()], reserved);
    return block;
  }
  /// A step begins.
  void reset_peaks() {
    PyTorchPool::reset_peaks();
    at_begin_ = statistics().reserved.current;
    std::ranges::fill(most_, Bytes());
  }
  /// Nodes that allocate nothing hold what the node before them did.
  [[nodiscard]] std::vector<Bytes> by_node() && {
    Bytes before = at_begin_;
    for (Bytes& most : most_) before = most = most == Bytes() ? before : most;
    return std::move(most_);
  }

 private:
  Bytes at_begin_;
  std::vector<Bytes> most_;
};

/// A pool that also records every event, as torch.cuda.memory's history does.
class TracingPool : public PyTorchPool {
 public:
  using PyTorchPool::PyTorchPool;

  void begin_node(NodeId node) { node_ = node; }
  void begin_entry(std::int32_t entry) { entry_ = entry; }
  /// A step begins.
  void reset_peaks() {
    PyTorchPool::reset_peaks();
    ++trace_.steps;
  }

  [[nodiscard]] auto allocate(Bytes bytes, NodeId node) {
    auto block = PyTorchPool::allocate(bytes, node);
    note_segments();
    if (block && block->valid()) {
      const AllocatorEvent event =
          event_of(AllocatorEvent::Kind::alloc, allocator().address_of(*block), bytes,
                   stream_of_node(node), entry_);
      live_.insert_or_assign(event.address, event);
      trace_.events.push_back(event);
    }
    return block;
  }
  void free(BlockId id) {
    if (!id.valid()) return;
    const auto live = live_.find(allocator().address_of(id));
    AllocatorEvent event = live->second;
    live_.erase(live);
    PyTorchPool::free(id);
    event.kind = AllocatorEvent::Kind::free;
    event.node = node_;
    event.step = trace_.steps;
    trace_.events.push_back(event);
    note_segments();
  }

  [[nodiscard]] AllocatorTrace trace() && {
    trace_.segments = allocator().snapshot();
    return std::move(trace_);
  }

 private:
  [[nodiscard]] AllocatorEvent event_of(AllocatorEvent::Kind kind, std::int64_t address, Bytes size,
                                        StreamId stream, std::int32_t entry = -1) const {
    return {.kind = kind,
            .address = address,
            .size = size,
            .stream = stream,
            .node = node_,
            .entry = entry,
            .step = trace_.steps};
  }

  /// Records which segments are new, which are gone, and which expandable ones grew or shrank.
  void note_segments() {
    const AllocatorStatistics& now = statistics();
    const std::array<std::int64_t, 3> figures{now.reserved.current.count(), now.device_allocations,
                                              now.alloc_retries};
    if (figures == figures_) return;
    figures_ = figures;
    std::map<std::int64_t, SegmentSnapshot> segments;
    for (SegmentSnapshot& segment : allocator().snapshot()) {
      segments.emplace(segment.address, std::move(segment));
    }
    for (const auto& [address, segment] : segments_) note_smaller(segment, segments);
    for (const auto& [address, segment] : segments) note_larger(segment);
    segments_ = std::move(segments);
  }

  void note_smaller(const SegmentSnapshot& before,
                    const std::map<std::int64_t, SegmentSnapshot>& segments) {
    using enum AllocatorEvent::Kind;
    const auto now = segments.find(before.address);
    const Bytes left = now == segments.end() ? Bytes() : now->second.reserved;
    if (left >= before.reserved) return;
    trace_.events.push_back(event_of(before.expandable ? segment_unmap : segment_free,
                                     before.address + left.count(), before.reserved - left,
                                     before.stream));
  }

  void note_larger(const SegmentSnapshot& now) {
    using enum AllocatorEvent::Kind;
    const auto before = segments_.find(now.address);
    const Bytes had = before == segments_.end() ? Bytes() : before->second.reserved;
    if (had >= now.reserved) return;
    trace_.events.push_back(event_of(now.expandable ? segment_map : segment_alloc,
                                     now.address + had.count(), now.reserved - had, now.stream));
  }

  AllocatorTrace trace_;
  NodeId node_;
  std::int32_t entry_ = -1;
  std::map<std::int64_t, AllocatorEvent> live_;  // by address
  std::map<std::int64_t, SegmentSnapshot> segments_;
  std::array<std::int64_t, 3> figures_{};
};

/// Runs the process in a pool and calls `end` with its replay and the pool.
template <typename Pool, typename End>
auto replayed(const SizedStep& step, const std::vector<Touches>& touches,
              const ReplaySettings& settings, End end) {
  const auto uses_of = [&](StepNumber number) {
    return storage_uses(
        step, {.step = number, .buffers = settings.buffers, .with_workspaces = false}, touches);
  };
  const std::vector<StorageUse> first = uses_of(StepNumber::first);
  const std::vector<StorageUse> steady = uses_of(StepNumber::steady);
  Pool pool(step, steady.size(), settings);
  ProcessWalk walk(step, settings.buffers, first, steady, pool);
  if (walk.load()) walk.run_steps();
  return end(std::move(walk).report(), pool);
}

}  // namespace

ProcessReplay replay_process(const SizedStep& step, const std::vector<Touches>& touches,
                             const ReplaySettings& settings) {
  return replayed<PyTorchPool>(step, touches, settings,
                               [](ProcessReplay replay, PyTorchPool& pool) {
                                 replay.same_limits = pool.same_limits();
                                 replay.same_workspaces = std::move(pool).same_workspaces();
                                 return replay;
                               });
}

std::vector<Bytes> reserved_by_node(const SizedStep& step, const std::vector<Touches>& touches,
                                    const ReplaySettings& settings) {
  return replayed<NotingPool>(
      step, touches, settings, [](const ProcessReplay& replay, NotingPool& pool) {
        return replay.completed() ? std::move(pool).by_node() : std::vector<Bytes>();
      });
}

AllocatorTrace trace_allocator(const SizedStep& step, const std::vector<Touches>& touches,
                               const ReplaySettings& settings) {
  AllocatorTrace trace = replayed<TracingPool>(
      step, touches, settings,
      [](const ProcessReplay&, TracingPool& pool) { return std::move(pool).trace(); });
  for_each_entry(
      step, {.step = StepNumber::steady, .buffers = settings.buffers, .with_workspaces = false},
      touches,
      [&](const MemoryEntry& entry, const StorageUse&) { trace.entries.push_back(entry); });
  return trace;
}

}  // namespace stowage
