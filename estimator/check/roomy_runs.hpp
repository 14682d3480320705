// RoomyRuns: what a step takes where nothing limits it, batch by batch, for several cards at once.
//
// PyTorch's allocator asks the driver for memory and looks at the card's size only when the driver
// refuses (or with a garbage collection threshold). So a process that reserves R bytes at most
// where there is plenty runs the same way on every card that leaves it R, and one run serves all
// cards whose convolutions take the same workspaces: where nothing is refused, the runtime takes
// the first engine of each. Below R only a run within the card's own limit can tell.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/runtime/check_settings.hpp"

namespace stowage {

struct RoomyRun {
  Bytes reserved;        ///< the most of the driver's memory that the allocator holds
  bool settles = false;  ///< later steps ask the driver for nothing (RuntimeRun::settles)
};

/// Safe for concurrent use.
class RoomyRuns {
 public:
  /// Precondition: serves(*graph, settings). `buffers`: runtime_buffers of the cards.
  RoomyRuns(std::shared_ptr<const StepGraph> graph, std::vector<RuntimeBuffer> buffers,
            const AllocatorSettings& allocator);

  /// Whether one run can stand for several cards: under PyTorch's allocator without a garbage
  /// collection threshold, and without cudnn.benchmark, which times what the card has room for.
  [[nodiscard]] static bool serves(const StepGraph& graph, const CheckSettings& settings);

  /// Whether these are runs of this step, or of one that differs in the compute capability alone,
  /// beside the same buffers. O(1) for the very step; else O(nodes + storages).
  [[nodiscard]] bool are_of(const StepGraph& graph,
                            const std::vector<RuntimeBuffer>& buffers) const;

  /// The run of `step`, from memory where its batch was run before with the same first workspaces.
  /// Precondition: are_of its graph, and that graph's storage_touches.
  /// O(steps * touches * log blocks) the first time.
  [[nodiscard]] RoomyRun of(const SizedStep& step, const std::vector<Touches>& touches);

 private:
  std::shared_ptr<const StepGraph> graph_;
  std::vector<RuntimeBuffer> buffers_;
  AllocatorSettings allocator_;
  std::mutex mutex_;
  struct Known {
    std::vector<Bytes> workspaces;  ///< by NodeId, of the first engines; empty: none wants one
    RoomyRun run;
  };
  [[nodiscard]] std::optional<RoomyRun> known(std::int64_t batch,
                                              const std::vector<Bytes>& workspaces);

  std::map<std::int64_t, std::vector<Known>> runs_;  // by batch
};

}  // namespace stowage
