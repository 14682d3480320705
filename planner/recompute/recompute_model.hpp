// RecomputeModel: the cost and the live memory of a choice of recomputed values.
//
// Everything stays on the GPU, except what pins keep off it: a kernel on the CPU takes nothing
// there, and a storage on the CPU is there for its kernels alone (pinned_lives.hpp). A choice says
// of each group of kernels (rewrite/rerun_groups.hpp) whether it runs again, and before which
// backward kernels its results are dropped and made once more. The figures are those of the step
// that with_recomputation makes, at a fraction of the work: a choice takes a few microseconds, for
// a large network a hundred.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/step_range.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/rewrite/rerun_groups.hpp"
#include "planner/problem/rates.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/step_pins.hpp"

namespace stowage {

/// By group of RecomputeModel::groups: whether it runs again. Then by entry of
/// RecomputeModel::renewals: whether the group is made once more there.
using RecomputeChoice = std::vector<bool>;

struct RecomputeOutcome {
  bool valid = true;         ///< no second run comes too late (RerunGroup::until)
  double extra_seconds = 0;  ///< of the kernels that run again
  Bytes peak;                ///< of live memory, each kernel with its least workspace
  double excess = 0;         ///< bytes above the limit, summed over all steps
};

class RecomputeModel {
 public:
  /// Groups that `pins` make useless to run again are left out.
  RecomputeModel(const SizedStep& step, const Rates& rates, const StepPins& pins = {});

  /// `limit`: memory above it counts as excess. Linear in the step. Not for concurrent calls: the
  /// model has scratch memory of its own.
  [[nodiscard]] RecomputeOutcome outcome(const RecomputeChoice& choice, Bytes limit);

  [[nodiscard]] const std::vector<RerunGroup>& groups() const { return groups_.groups; }
  /// All possible renewals: one for each backward node and each group whose results it reads.
  [[nodiscard]] const std::vector<Renewal>& renewals() const { return renewals_; }
  /// The length of a choice.
  [[nodiscard]] std::size_t decisions() const { return groups().size() + renewals_.size(); }
  [[nodiscard]] const StepGraph& graph() const { return *graph_; }
  /// Seconds of a group's kernels when they run again.
  [[nodiscard]] double seconds(std::size_t group) const { return group_seconds_[group]; }
  /// The bytes of a group's results that backward reads.
  [[nodiscard]] Bytes saved(std::size_t group) const { return saved_[group]; }
  /// The groups whose results a group reads; ascending.
  [[nodiscard]] const std::vector<std::int32_t>& inputs(std::size_t group) const {
    return inputs_[group];
  }
  /// The values for with_recomputation: the parts of the choice that make a difference.
  [[nodiscard]] std::vector<RecomputedValue> values(const RecomputeChoice& choice) const;

 private:
  /// A storage whose lifetime a choice can change. Node numbers are those of the step without
  /// recomputation.
  struct ChangingItem {
    std::int64_t bytes = 0;
    std::int32_t group = -1;  // the group that makes it; -1: it is not recomputed
    std::int32_t first = 0;
    std::int32_t last = 0;
    std::int32_t last_forward = 0;
  };
  /// The places of an item in the step with its second runs.
  struct Places {
    std::int32_t last_read = -1;   // of the first copy, by a second run
    std::int32_t copy_first = -1;  // of the latest copy
    std::int32_t copy_last = -1;
    bool is_copied = false;
  };

  void add_items(const ResidencyProblem& problem, const StepPins& pins);
  void add_lives(const std::vector<StepRange>& lives, Bytes bytes);
  void add_renewals();
  void end_copies(std::size_t group);
  void run_again(std::int32_t node);
  void note_live(std::int32_t first, std::int32_t last, std::int64_t bytes);
  void note_lifetimes();

  std::shared_ptr<const StepGraph> graph_;
  RerunGroups groups_;
  std::vector<Renewal> renewals_;
  std::vector<std::int64_t> scratch_;  // by node: workspace, temporaries, what lives on the CPU
  std::vector<double> group_seconds_;
  std::vector<Bytes> saved_;
  std::vector<std::vector<std::int32_t>> inputs_, items_of_;  // by group
  std::vector<std::int64_t> enter_, leave_;  // by node: bytes of what no choice can change
  std::vector<ChangingItem> items_;
  std::vector<std::vector<std::int32_t>> reads_, writes_;  // items, by node of a group
  // By backward node: the groups whose results it reads, these results, the renewals there.
  std::vector<std::vector<std::int32_t>> wants_, wanted_items_, renewals_at_;

  // Of one outcome.
  std::vector<bool> has_run_;        // by group: and what it made is still there
  std::vector<std::int32_t> batch_;  // groups that run again before the node at hand
  std::vector<std::int32_t> batch_nodes_;
  std::vector<std::int32_t> place_;     // by node
  std::vector<std::int32_t> sequence_;  // nodes by place; what runs again: -1 - node
  std::vector<Places> places_;          // by item
  std::vector<std::int64_t> change_;    // of live bytes, by place
};

}  // namespace stowage
