// SharedReplays: replays of a step, batch by batch, that serve several cards at once.
//
// PyTorch's allocator asks the driver for memory and looks at the card's size only when the driver
// refuses (or with a garbage collection threshold). So a process runs the same way on every card
// where the driver grants and refuses the same requests:
//
//     limit   |  refuses more  |  this very run  |  grants more  |
//                              ^ the most that was granted
//                                                ^ the least that was refused
//
// A run where nothing is refused serves every limit from the bytes that it reserves on.
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

struct ReplayOutcome {
  Bytes reserved;        ///< the most of the driver's memory that the allocator holds
  bool settles = false;  ///< later steps ask the driver for nothing (RuntimeRun::settles)
};

struct LimitedReplay {
  LimitRange limits;  ///< under which the step runs in this way
  bool completes = false;
  ReplayOutcome taken;

  /// The driver refuses nothing, so that a higher limit changes nothing.
  [[nodiscard]] bool nothing_refused() const { return !limits.end; }
};

/// Whether the steps differ in nothing but the compute capability that they were lowered for, on
/// which no replay depends. O(1) for the very same; else O(nodes + storages).
[[nodiscard]] bool equal_except_capability(const StepGraph& a, const StepGraph& b);

/// Safe for concurrent use.
class SharedReplays {
 public:
  /// Precondition: serves(*graph, settings). `buffers`: runtime_buffers of the cards.
  SharedReplays(std::shared_ptr<const StepGraph> graph, std::vector<RuntimeBuffer> buffers,
                const AllocatorSettings& allocator);

  /// Whether one run can stand for several cards: under PyTorch's allocator without a garbage
  /// collection threshold, and without cudnn.benchmark, which times what the card has room for.
  [[nodiscard]] static bool serves(const StepGraph& graph, const CheckSettings& settings);

  /// Whether these are replays of this step (or of one that is equal_except_capability) beside the
  /// same buffers.
  [[nodiscard]] bool matches(const StepGraph& graph,
                             const std::vector<RuntimeBuffer>& buffers) const;

  /// The replay of `step` with unlimited memory. Taken from an earlier replay of its batch with the
  /// same workspaces, or with workspaces of sums that leave the allocator alike.
  /// Preconditions: matches(*step.graph), `touches` are that graph's storage_touches.
  /// O(steps * touches * log blocks) the first time.
  [[nodiscard]] ReplayOutcome without_limit(const SizedStep& step,
                                            const std::vector<Touches>& touches);
  /// As above, where the allocator has `limit` (>= 0) bytes.
  [[nodiscard]] LimitedReplay at_limit(Bytes limit, const SizedStep& step,
                                       const std::vector<Touches>& touches);

 private:
  std::shared_ptr<const StepGraph> graph_;
  std::vector<RuntimeBuffer> buffers_;
  AllocatorSettings allocator_;
  std::vector<std::size_t> sums_;  // the nodes that may want a workspace by formula
  std::mutex mutex_;
  /// A batch, and the workspaces that its kernels but for sums may take.
  using Question = std::pair<std::int64_t, std::vector<Bytes>>;
  struct KnownReplay {
    LimitedReplay run;
    // By sum: what it took, and what it might have taken.
    std::vector<Bytes> workspaces;
    std::vector<WorkspaceRange> ranges;
  };
  [[nodiscard]] Question question_of(const SizedStep& step) const;
  [[nodiscard]] KnownReplay known_replay(const SizedStep& step, const ProcessReplay& replay) const;
  [[nodiscard]] bool serves_sums(const KnownReplay& known, const SizedStep& step) const;
  [[nodiscard]] std::optional<LimitedReplay> known(const Question& question, Bytes limit,
                                                   const SizedStep& step);

  std::map<Question, std::vector<KnownReplay>> runs_;  // of different limits and sums
};

}  // namespace stowage
