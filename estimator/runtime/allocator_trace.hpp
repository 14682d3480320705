// AllocatorTrace: all that PyTorch's allocator does in a simulated process, event by event, as
// torch.cuda.memory._record_memory_history records it, and what it holds in the end.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/allocator/caching_allocator.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/runtime/allocator_replay.hpp"
#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

struct AllocatorEvent {
  enum class Kind : std::uint8_t {
    alloc,
    free,
    segment_alloc,  ///< memory from the driver
    segment_free,
    segment_map,  ///< of an expandable segment
    segment_unmap,
  };
  Kind kind = Kind::alloc;
  std::int64_t address = 0;
  Bytes size;  ///< of a block: what was requested, before rounding
  StreamId stream;
  NodeId node;              ///< that runs; none: while the model is loaded
  std::int32_t entry = -1;  ///< of AllocatorTrace::entries; -1: a workspace, or a segment
  int step = 0;             ///< 1: the first; 0: while the model is loaded
};

struct AllocatorTrace {
  std::vector<AllocatorEvent> events;
  std::vector<MemoryEntry> entries;
  std::vector<SegmentSnapshot> segments;  ///< in the end
  int steps = 0;                          ///< that were run
};

/// Of the process that replay_process runs with these settings, to its end or to where it fails.
[[nodiscard]] AllocatorTrace trace_allocator(const SizedStep& step,
                                             const std::vector<Touches>& touches,
                                             const ReplaySettings& settings);

/// Of a process of PyTorch on a card: within the card's limit where `run` completed, else with
/// unlimited memory, so that the events show what it wants. `run`: of the same step.
[[nodiscard]] AllocatorTrace trace_pytorch(const StepOnCard& on_card, const RuntimeRun& run);

}  // namespace stowage
