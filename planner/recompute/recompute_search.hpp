// The search for a cheap choice of what to recompute, within a limit on memory.
//
// Starts: segments of all counts that make sense, and a greedy choice by price: the group next
// whose second run takes the fewest seconds for each byte step above the limit that it saves. From
// the best of them, threshold accepting (Dueck and Scheuer 1990): groups are flipped, alone, in
// pairs or in rows, and renewals; a change is taken if it costs no more than a threshold, which
// falls to 0. Memory above the limit has a price, which rises while nothing fits. In the end groups
// that need not run again are kept after all. Effort is counted in choices tried, so that equal
// problems have equal answers; `stop` cuts it short.
#pragma once

#include <cstdint>
#include <functional>

#include "planner/recompute/recompute_model.hpp"

namespace stowage {

struct RecomputeSearchOptions {
  Bytes limit;
  std::int64_t most_trials = 100'000;
  std::function<bool()> stop = {};  ///< polled
};

struct FoundChoice {
  RecomputeChoice choice;
  RecomputeOutcome outcome;
};

/// Fits if any choice seen does; else the one of least excess. `hint`: a choice to start from too,
/// or empty.
[[nodiscard]] FoundChoice search_choice(RecomputeModel& model, const SizedStep& step,
                                        const RecomputeSearchOptions& options,
                                        const RecomputeChoice& hint = {});

}  // namespace stowage
