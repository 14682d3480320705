// search_choice: searches for a cheap choice of what to recompute, within a limit on memory.
//
// It starts from segments of all sensible counts, and from a greedy choice that adds the group
// whose second run takes the fewest seconds for each byte step above the limit that it saves. From
// the best of these it goes on by threshold accepting (Dueck and Scheuer 1990): groups are flipped,
// alone, in pairs or in rows, and renewals are flipped. A change is accepted if it costs at most a
// threshold, which falls to 0. Memory above the limit has a price, which rises while nothing fits.
// At the end groups that need not run again are removed from the choice. Effort is counted in
// choices tried.
#pragma once

#include <cstdint>

#include "planner/problem/work_budget.hpp"
#include "planner/recompute/recompute_model.hpp"

namespace stowage {

struct RecomputeSearchOptions {
  Bytes limit;
  std::int64_t most_trials = 100'000;
  WorkBudget* work = nullptr;  ///< nothing more is tried once it is over; null: no limit
};

struct FoundChoice {
  RecomputeChoice choice;
  RecomputeOutcome outcome;
};

/// A choice that fits if any choice tried does; else the one of least excess. `hint`: a further
/// choice to start from, or empty.
[[nodiscard]] FoundChoice search_choice(RecomputeModel& model, const SizedStep& step,
                                        const RecomputeSearchOptions& options,
                                        const RecomputeChoice& hint = {});

}  // namespace stowage
