// The largest value of a step's quantity (users, context length, sequence length) that fits a card.
//
// As of a batch (batch_search.hpp) only a run at a value says whether it fits, and each value that
// is named has been run. A trial reads and lowers the model anew, so that there are few of them:
// doubling from 1, then bisection. A value beyond the one found may fit by chance.
#pragma once

#include <cstdint>
#include <functional>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct LargestValue {
  std::int64_t value = 0;  ///< fits, and value + 1 does not or is past `most`; 0: not even 1 does
  bool reached_most = false;  ///< nothing up to `most` failed
  Diagnostics refused = {};   ///< why value + 1 cannot be asked at all; empty: it does not fit
};

/// `fits` is asked about values in [1, most], at most 2 log2(most) of them. Its error at 1 is
/// returned; at a larger value it counts as a limit, which the model itself sets.
/// `guess`: the value that is asked about after 1; from there in steps that double, then bisection.
[[nodiscard]] Result<LargestValue> find_largest_value(
    std::int64_t most, const std::function<Result<bool>(std::int64_t)>& fits,
    std::int64_t guess = 2);

}  // namespace stowage
