// batch: the largest batch that fits a card, and the one to use.
//
// What a runtime takes does not grow steadily with the batch: cuDNN chooses other engines for other
// sizes, and PyTorch's allocator leaves other gaps. So nothing but a run of the process at a batch
// says whether it completes (batch_trials.hpp), and each batch that is named here has been run:
//
//   ceiling       tensors alone fit no more above it: found without a question, by bisection
//   guess         the largest whose tensors fit beside workspaces by the rule: without a question
//   largest       from the guess outwards in growing strides, then bisected; then from the ceiling
//                 down as far as the budget goes, since a larger one may complete by chance
//   recommended   searched as the largest is, among the batches that leave `margin` and at which
//                 the runtime never gives its cache back; those below it are tried too, and where
//                 one fails it is searched again below that one
//   largest_safe  batches below the largest are tried, evenly spread, as far as the budget goes
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "estimator/base/batch.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/check/batch_trials.hpp"
#include "estimator/check/check.hpp"

namespace stowage {

struct BatchSettings {
  CheckSettings check;
  std::optional<Bytes> margin = {};  ///< usual_margin() where it is not given
  /// Samples of all GPUs together, to be reached by accumulation.
  std::optional<WholeBatch> global_batch = {};
  /// The step with two micro-batches, whose second forward runs beside the first one's gradients:
  /// how a micro-batch of an accumulated step is sized, however many there are. Wanted with
  /// global_batch.
  std::shared_ptr<const StepGraph> accumulating = {};
  /// False: the sizes alone, without reports and curve, and no batch above `recommended` is tried.
  bool in_full = true;
  /// Replays that match the step, shared by its searches on several cards; null: the search has its
  /// own.
  std::shared_ptr<SharedReplays> replays = {};
};

struct CurvePoint {
  std::int64_t batch = 0;
  Bytes device_bytes;
};

/// Gradient accumulation that reaches a global batch.
struct Accumulation {
  WholeBatch global_batch;
  std::int64_t gpus = 1;
  std::int64_t micro_batch = 0;  ///< of each GPU
  std::int64_t steps = 0;        ///< micro_batch * steps * gpus == global_batch
};

struct BatchReport {
  std::int64_t largest = 0;  ///< 0: not even one; the next larger one does not fit
  /// Every batch up to it fits, as far as was tried. The largest such; if not in_full at
  /// least `recommended`.
  std::int64_t largest_safe = 0;
  /// Runs without giving the cache back and with `margin` to spare. Where no batch leaves so much
  /// (keeps_margin is false): without giving the cache back; else largest_safe.
  std::int64_t recommended = 0;
  Bytes margin;
  bool keeps_margin = true;
  std::int64_t ceiling = 0;  ///< tensors alone fit no more above it
  bool all_tried = true;     ///< false: some batches below the ceiling were not tried
  bool unlimited = false;    ///< nothing that was tried up to largest_searched_batch failed
  /// Powers of two up to the largest (of four, sixteen ... where the budget ends), and the largest.
  std::vector<CurvePoint> curve;
  std::optional<Accumulation> accumulation;
  std::optional<CheckReport> at_largest;
  std::optional<CheckReport> at_recommended;
  std::optional<CheckReport> at_one;  ///< where not even one fits: what takes the room
};

/// What a recommended batch leaves: the larger of two percent of the card and what is uncertain
/// outside the allocator (process_overhead.hpp), in whole MiB.
[[nodiscard]] Bytes usual_margin(const StepGraph& graph, const Card& card,
                                 const CheckSettings& settings);

/// The multiples of eight, four and two that are at most a sixteenth below `batch`, roundest first.
[[nodiscard]] std::vector<std::int64_t> rounded_batches(std::int64_t batch);

/// Errors: as size_step's; a global batch that the GPUs cannot share equally.
[[nodiscard]] Result<BatchReport> find_batch(const std::shared_ptr<const StepGraph>& graph,
                                             const Card& card, const BatchSettings& settings,
                                             WorkspaceSource& source);

/// The largest batch, as advice beside another answer: about a second's questions.
struct LargestBatch {
  std::int64_t batch = 0;  ///< completes; 0: none was found
  bool is_proven = true;   ///< the next larger one does not complete; false: the budget ended first
  bool unlimited = false;  ///< nothing that was tried up to largest_searched_batch failed
};
/// Errors: as size_step's.
[[nodiscard]] Result<LargestBatch> look_for_largest(std::shared_ptr<const StepGraph> graph,
                                                    const Card& card, const CheckSettings& settings,
                                                    WorkspaceSource& source);

}  // namespace stowage
