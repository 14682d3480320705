// RoomyRuns: runs of a step, batch by batch, that serve several cards at once.
//
// PyTorch's allocator asks the driver for memory and looks at the card's size only when the driver
// refuses (or with a garbage collection threshold). So a process runs the same way on every card
// where the driver grants and refuses the same requests:
//
//     limit   |  refuses more  |  this very run  |  grants more  |
//                              ^ the most that was granted
//                                                ^ the least that was refused
//
// A roomy run is one where nothing is refused: it serves all limits from what it reserves on.
//
// The workspaces of sums differ from card to card (sum_workspaces.hpp); a run serves those too that
// leave the allocator as its own did (workspace_range.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/runtime/process_replay.hpp"

namespace stowage {

struct RoomyRun {
  Bytes reserved;        ///< the most of the driver's memory that the allocator holds
  bool settles = false;  ///< later steps ask the driver for nothing (RuntimeRun::settles)
};

struct LimitedRun {
  LimitRange limits;  ///< under which the step runs so
  bool completes = false;
  RoomyRun taken;

  /// Nothing is refused, so that no limit shows.
  [[nodiscard]] bool is_roomy() const { return !limits.end; }
};

/// Whether they are equal but for the compute capability that they were lowered for, which no run
/// looks at. O(1) for the very same; else O(nodes + storages).
[[nodiscard]] bool run_alike(const StepGraph& a, const StepGraph& b);

/// Safe for concurrent use.
class RoomyRuns {
 public:
  /// Precondition: serves(*graph, settings). `buffers`: runtime_buffers of the cards.
  RoomyRuns(std::shared_ptr<const StepGraph> graph, std::vector<RuntimeBuffer> buffers,
            const AllocatorSettings& allocator);

  /// Whether one run can stand for several cards: under PyTorch's allocator without a garbage
  /// collection threshold, and without cudnn.benchmark, which times what the card has room for.
  [[nodiscard]] static bool serves(const StepGraph& graph, const CheckSettings& settings);

  /// Whether these are runs of this step, or of one that runs alike, beside the same buffers.
  [[nodiscard]] bool are_of(const StepGraph& graph,
                            const std::vector<RuntimeBuffer>& buffers) const;

  /// The run of `step` where nothing limits it, from memory where its batch was run before with the
  /// same workspaces, or sums' that do as well. Precondition: are_of its graph, and that graph's
  /// storage_touches. O(steps * touches * log blocks) the first time.
  [[nodiscard]] RoomyRun of(const SizedStep& step, const std::vector<Touches>& touches);
  /// The same where the allocator has `limit` (>= 0), from memory where a run serves it too.
  [[nodiscard]] LimitedRun within(Bytes limit, const SizedStep& step,
                                  const std::vector<Touches>& touches);

 private:
  std::shared_ptr<const StepGraph> graph_;
  std::vector<RuntimeBuffer> buffers_;
  AllocatorSettings allocator_;
  std::vector<std::size_t> sums_;  // the nodes that may want a workspace by formula
  std::mutex mutex_;
  /// A batch, and the workspaces that its kernels but for sums may take.
  using Question = std::pair<std::int64_t, std::vector<Bytes>>;
  struct KnownRun {
    LimitedRun run;
    // By sum: what it took, and what it might have taken.
    std::vector<Bytes> workspaces;
    std::vector<WorkspaceRange> ranges;
  };
  [[nodiscard]] Question question_of(const SizedStep& step) const;
  [[nodiscard]] KnownRun known_run(const SizedStep& step, const ProcessReplay& replay) const;
  [[nodiscard]] bool serves_sums(const KnownRun& known, const SizedStep& step) const;
  [[nodiscard]] std::optional<LimitedRun> known(const Question& question, Bytes limit,
                                                const SizedStep& step);

  std::map<Question, std::vector<KnownRun>> runs_;  // of different limits and sums
};

}  // namespace stowage
