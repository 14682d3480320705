// BatchTrials: runs of one step at many batches: does it complete, and with how much to spare?
//
// Each trial is a run of the runtime's process (check.hpp). Its price is the questions that it asks
// of the source of workspaces, about 3 ms each where cuDNN answers for the first time. A search has
// a budget of questions and not of seconds, so that its answer is the same on every machine and
// with every cache; a run of 2,000 kernels counts as one question.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/check/check.hpp"
#include "estimator/check/shared_replays.hpp"

namespace stowage {

inline constexpr std::int64_t largest_searched_batch = std::int64_t{1} << 24;

/// Passes questions on and counts those that are new.
class CountingSource : public WorkspaceSource {
 public:
  /// `source` outlives it.
  explicit CountingSource(WorkspaceSource& source) : source_(source) {}
  [[nodiscard]] WorkspaceAnswer engines(const ConvolutionQuery& query) override;
  [[nodiscard]] WorkspaceAnswer attention_engines(const AttentionQuery& query) override;
  [[nodiscard]] std::int64_t asked() const { return asked_; }

 private:
  WorkspaceSource& source_;
  std::set<ConvolutionQuery> convolutions_;
  std::set<AttentionQuery> attention_;
  std::int64_t asked_ = 0;
};

class BatchTrials {
 public:
  /// `card`, `settings` and `source` outlive it. `budget`: questions. `replays`: of this step
  /// beside the card's buffers (SharedReplays::matches), shared with searches on other cards; null:
  /// none. They change no answer.
  BatchTrials(std::shared_ptr<const StepGraph> graph, const Card& card,
              const CheckSettings& settings, WorkspaceSource& source, std::int64_t budget,
              std::shared_ptr<SharedReplays> replays = nullptr);

  /// Bytes left for the allocator; negative if context and libraries alone do not fit.
  [[nodiscard]] Bytes limit() const { return limit_; }

  /// The largest batch up to largest_searched_batch whose tensors alone fit, without workspaces;
  /// 0: none. Every size is affine in the batch with a slope of at least 0, so that no larger one
  /// completes. Asks nothing.
  [[nodiscard]] std::int64_t ceiling() const { return ceiling_; }

  /// An estimate of the largest batch that completes, to a few percent, within [1, ceiling]: where
  /// tensors and workspaces by the documented rule fit beside `spare` bytes. Runs and asks nothing.
  [[nodiscard]] std::int64_t likely_largest(Bytes spare) const;

  /// An estimate of the largest batch up to `tried`, a batch that was tried, that completes calmly.
  /// With shared replays it follows from what the run at `tried` takes, which grows about as the
  /// batch does. Asks nothing new.
  [[nodiscard]] std::int64_t likely_calm(std::int64_t tried, Bytes spare);

  /// Whether the step completes. Errors: as size_step's.
  [[nodiscard]] Result<bool> completes(std::int64_t batch);
  /// Whether it completes without giving its cache back and leaves `spare`; TensorFlow, whose pool
  /// takes all that is there: if others held `spare` more.
  [[nodiscard]] Result<bool> completes_calmly(std::int64_t batch, Bytes spare);
  [[nodiscard]] Result<CheckReport> check_at(std::int64_t batch);

  /// Whether beside what is live every kernel could have a workspace of eight times its operands,
  /// and an allocator 30 percent of the memory (at least 1 GiB) for fragmentation. Where it holds
  /// for a batch, it holds for all smaller ones. Asks nothing. Only the search for largest_safe
  /// takes it for "completes".
  [[nodiscard]] bool has_ample_room(std::int64_t batch);

  /// The smallest batch tried that does not complete; none: all that were tried complete.
  [[nodiscard]] std::optional<std::int64_t> smallest_failing() const;
  [[nodiscard]] bool is_tried(std::int64_t batch) const { return completes_.contains(batch); }

  /// Whether the budget of questions is used up.
  [[nodiscard]] bool spent() const { return spent_ + source_.asked() >= budget_; }
  /// What a trial has cost at most so far; at least 1.
  [[nodiscard]] std::int64_t price() const { return price_; }
  [[nodiscard]] std::int64_t left() const { return budget_ - spent_ - source_.asked(); }

 private:
  /// With all workspaces on this card, and without what no question about memory needs.
  [[nodiscard]] Result<SizedStep> sized_on_card(std::int64_t batch, WorkspaceSource& source) const;
  [[nodiscard]] std::optional<std::vector<Bytes>> live_without_workspaces(std::int64_t batch) const;
  [[nodiscard]] bool tensors_fit(std::int64_t batch) const;
  [[nodiscard]] std::int64_t find_ceiling() const;
  /// Whether each kernel's least workspace fits beside what is live: without it no step completes.
  /// The tightest are asked first.
  [[nodiscard]] bool least_workspaces_fit(std::int64_t batch);
  [[nodiscard]] Bytes fragmentation() const;
  [[nodiscard]] bool completes_here(const SizedStep& step) const;
  void count_run() { spent_ += run_price_; }

  std::shared_ptr<const StepGraph> graph_;
  const Card& card_;
  const CheckSettings& settings_;
  CountingSource source_;
  std::int64_t budget_;
  std::int64_t run_price_;
  std::int64_t spent_ = 0;
  std::int64_t price_ = 1;
  Bytes granularity_;
  Bytes limit_;
  std::vector<RuntimeBuffer> buffers_;
  std::vector<Touches> touches_;
  std::vector<std::size_t> askers_;  // the nodes whose workspace a source is asked about
  std::vector<std::size_t> sums_;    // those that may want one by formula (sum_workspaces.hpp)
  std::shared_ptr<SharedReplays> replays_;  // null: none are shared
  std::int64_t ceiling_ = 0;
  std::map<std::int64_t, bool> completes_;  // what was tried
  std::int64_t largest_completing_ = 0;     // of what was tried
};

}  // namespace stowage
