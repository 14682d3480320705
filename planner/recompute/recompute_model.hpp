// RecomputeModel: what a choice of recomputed values costs and how much memory it leaves live.
//
// Everything stays on the GPU, but what pins keep off it: a kernel on the CPU takes nothing there,
// a storage on the CPU is there for its kernels alone (pinned_lives.hpp). A choice says of each
// group of kernels (rewrite/rerun_groups.hpp) whether it runs again, and before which backward
// kernels what it has made by then is let go and made once more. The figures are those of the step
// that with_recomputation makes of it, at a fraction of the price: a choice is tried in a few
// microseconds, a large network's in a hundred.
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

/// First by group of RecomputeModel::groups: it runs again. Then by RecomputeModel::renewals: it is
/// renewed there.
using RecomputeChoice = std::vector<bool>;

struct RecomputeOutcome {
  bool valid = true;         ///< nothing that runs again comes too late (RerunGroup::until)
  double extra_seconds = 0;  ///< of the kernels that run again
  Bytes peak;                ///< of what is live, each kernel with its least workspace
  double excess = 0;         ///< byte steps above the limit, over all steps
};

class RecomputeModel {
 public:
  /// Groups that `pins` leave no reason to run again are none.
  RecomputeModel(const SizedStep& step, const Rates& rates, const StepPins& pins = {});

  /// `limit`: above which memory counts as excess. Linear in the step. Not for several threads at
  /// once: it has scratch of its own.
  [[nodiscard]] RecomputeOutcome outcome(const RecomputeChoice& choice, Bytes limit);

  [[nodiscard]] const std::vector<RerunGroup>& groups() const { return groups_.groups; }
  /// All that there may be: each backward node that reads what a group makes.
  [[nodiscard]] const std::vector<Renewal>& renewals() const { return renewals_; }
  /// How long a choice is.
  [[nodiscard]] std::size_t decisions() const { return groups().size() + renewals_.size(); }
  [[nodiscard]] const StepGraph& graph() const { return *graph_; }
  /// Seconds of a group's kernels when they run again.
  [[nodiscard]] double seconds(std::size_t group) const { return group_seconds_[group]; }
  /// What backward reads of a group's results, in bytes.
  [[nodiscard]] Bytes saved(std::size_t group) const { return saved_[group]; }
  /// The groups whose results a group reads; ascending.
  [[nodiscard]] const std::vector<std::int32_t>& inputs(std::size_t group) const {
    return inputs_[group];
  }
  /// For with_recomputation: what of the choice makes a difference.
  [[nodiscard]] std::vector<RecomputedValue> values(const RecomputeChoice& choice) const;

 private:
  /// A storage whose lifetime a choice can change. Nodes as they are without one.
  struct ChangingItem {
    std::int64_t bytes = 0;
    std::int32_t group = -1;  // that makes it; -1: it is not recomputed
    std::int32_t first = 0;
    std::int32_t last = 0;
    std::int32_t last_forward = 0;
  };
  struct Places {                  // in the step with what runs again
    std::int32_t last_read = -1;   // of the first copy, by what runs again
    std::int32_t copy_first = -1;  // of the latest copy
    std::int32_t copy_last = -1;
    bool is_copied = false;
  };

  void add_items(const ResidencyProblem& problem, const StepPins& pins);
  void add_lives(const std::vector<StepRange>& lives, Bytes bytes);
  void add_renewals();
  void let_go(std::size_t group);
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
