// ValueRuns: a step at a value (users, a context's tokens, a sequence's) on several cards at once.
//
// A value's graph is read and lowered once for all cards that run it alike, and one run of the
// allocator serves those with room for it (estimator/check/roomy_runs.hpp). The answer for a card
// is that for it alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/requested_step.hpp"
#include "cli/serving.hpp"
#include "cli/value_search.hpp"

namespace stowage {

struct ValueQuestion {
  StepRequest step;                        ///< of one model
  std::optional<LargestOf> of;             ///< what a value is of; none: no value, serving as it is
  std::optional<ServingSettings> serving;  ///< none: with seq
  std::int64_t batch = 1;                  ///< with seq
  bool asks_cudnn = false;                 ///< else workspaces are by the documented rule
};

class ValueRuns {
 public:
  /// `cards` outlive it; at least one. Errors: served_model's.
  [[nodiscard]] static Result<ValueRuns> of(const ValueQuestion& question,
                                            const std::vector<RequestedCard>& cards);

  /// By index into `cards`. `value`: ignored where `of` is none.
  [[nodiscard]] std::vector<Result<ValueRun>> at(std::int64_t value,
                                                 const std::vector<std::size_t>& cards);

  /// "llama-3-8b serving 8 users of 8,192 tokens, bf16, paged cache in blocks of 16"; empty before
  /// the first run of a step without a cache.
  [[nodiscard]] const std::string& heading() const { return heading_; }

 private:
  ValueRuns(const ValueQuestion& question, const std::vector<RequestedCard>& cards)
      : question_(question), cards_(&cards) {}
  void serve(std::int64_t value, const std::vector<std::size_t>& cards,
             std::vector<Result<ValueRun>>& runs);
  void train(std::int64_t value, const std::vector<std::size_t>& cards,
             std::vector<Result<ValueRun>>& runs);
  [[nodiscard]] ServedModel served_on(std::size_t card) const;

  ValueQuestion question_;
  const std::vector<RequestedCard>* cards_;
  std::optional<ServedModel> served_;            // of the first card
  std::vector<Result<CheckSettings>> settings_;  // by card, of serving
  std::string heading_;
};

}  // namespace stowage
