// StepMemory: a sized step as what takes memory and when, ready for lifetimes().
//
// One entry a storage that is ever live, one for each convolution's workspace, and one for each
// buffer that the runtime itself keeps (cuBLAS's workspaces). Sizes are those that the runtime
// takes: PyTorch's allocator hands out multiples of 512 bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/lifetimes.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// Which execution of the step: optimizer state appears at the first one's update.
enum class StepNumber { first, steady };

/// From the first node of a phase to the last of another, or of the same.
struct PhaseRange {
  Phase first = Phase::forward, last = Phase::update;
};

/// What is there for the whole step though none of its kernels names it: the runtime's own buffers,
/// and what else the process keeps (an evaluation's optimizer state).
struct RuntimeBuffer {
  std::string name;
  Bytes bytes;
  StorageClass storage_class = StorageClass::workspace;
  NodeId first_use = {};                  ///< in the first step; none: it is there before
  std::optional<PhaseRange> during = {};  ///< it is there during these alone; none: it is kept
};

struct MemoryRules {
  StepNumber step = StepNumber::steady;
  Bytes granularity{1};     ///< sizes are rounded up to multiples of it
  std::vector<int> engine;  ///< by NodeId: which engine; empty: the first everywhere
  std::vector<RuntimeBuffer> buffers;
  bool with_workspaces = true;
};

/// One of three: a storage, the workspace of a node, a buffer of the runtime.
struct MemoryEntry {
  StorageClass storage_class = StorageClass::activation;
  StorageId storage;
  NodeId node;
  std::int32_t buffer = -1;  ///< of StepMemory::buffers
  OperatorId op;             ///< whose layer it belongs to; none: the model's or the runtime's
  Bytes exact;               ///< before rounding
};

struct StepMemory {
  std::shared_ptr<const StepGraph> graph;
  std::vector<RuntimeBuffer> buffers;
  std::vector<MemoryEntry> entries;
  std::vector<StorageUse> uses;  ///< parallel to entries
  std::int32_t steps = 0;
};

/// The steps at which each storage must be there, by StorageId: arguments, temporaries, holds.
[[nodiscard]] std::vector<Touches> storage_touches(const StepGraph& graph);

[[nodiscard]] StepMemory step_memory(const SizedStep& step, const MemoryRules& rules);
/// As above, for callers that have the graph's storage_touches already.
[[nodiscard]] StepMemory step_memory(const SizedStep& step, const MemoryRules& rules,
                                     const std::vector<Touches>& touches);
/// Visits the entries and uses of step_memory in their order (storages, workspaces, the runtime's
/// buffers) without making the lists, which of a large network are a tenth of all memory.
/// `touches`: the graph's storage_touches.
void for_each_entry(const SizedStep& step, const MemoryRules& rules,
                    const std::vector<Touches>& touches,
                    const std::function<void(const MemoryEntry&, const StorageUse&)>& take);
/// The uses of step_memory alone.
[[nodiscard]] std::vector<StorageUse> storage_uses(const SizedStep& step, const MemoryRules& rules,
                                                   const std::vector<Touches>& touches);
/// live_bytes of these uses.
[[nodiscard]] std::vector<Bytes> live_bytes(const SizedStep& step, const MemoryRules& rules,
                                            const std::vector<Touches>& touches);

}  // namespace stowage
