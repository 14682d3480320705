#include "estimator/check/largest_value.hpp"

#include <algorithm>

namespace stowage {

Result<LargestValue> find_largest_value(std::int64_t most,
                                        const std::function<Result<bool>(std::int64_t)>& fits,
                                        const std::function<std::int64_t(std::int64_t)>& estimate) {
  LargestValue found;
  std::int64_t fails = most + 1;
  const auto ask = [&](std::int64_t value) {
    const Result<bool> answer = fits(value);
    if (answer && *answer) {
      found.value = value;
      return;
    }
    fails = value;
    found.refused = answer ? Diagnostics() : answer.error();
  };
  ask(1);
  if (found.value == 0) {
    if (!found.refused.empty()) return tl::unexpected(std::move(found.refused));
    return found;
  }
  for (std::int64_t value = 2; value < fails; value = std::min(value * 2, fails)) {
    ask(value);
    if (value == most) break;
    if (value * 2 > most && fails > most && value < most) {
      ask(most);
      break;
    }
  }
  if (estimate && fails - found.value > 2) {
    const std::int64_t first_step = std::max<std::int64_t>((fails - found.value) / 64, 1);
    const std::int64_t guess = std::clamp(estimate(found.value), found.value + 1, fails - 1);
    ask(guess);
    const bool upwards = found.value == guess;
    const std::int64_t unchanged = upwards ? fails : found.value;
    for (std::int64_t step = first_step; fails - found.value > 1; step *= 2) {
      ask(upwards ? std::min(found.value + step, fails - 1)
                  : std::max(fails - step, found.value + 1));
      if ((upwards ? fails : found.value) != unchanged) break;
    }
  }
  while (fails - found.value > 1) ask(found.value + (fails - found.value) / 2);
  found.reached_most = fails > most;
  return found;
}

}  // namespace stowage
