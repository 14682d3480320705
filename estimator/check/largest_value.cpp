#include "estimator/check/largest_value.hpp"

#include <algorithm>
#include <bit>

namespace stowage {

Result<LargestValue> find_largest_value(std::int64_t most,
                                        const std::function<Result<bool>(std::int64_t)>& fits,
                                        std::int64_t guess) {
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
  // Without a guess the steps upwards are those of a doubling: 2, 4, 8. Near a guess the need may
  // stand still for a while (whole blocks of an allocator), so that steps of 1 would take as many
  // trials as the plateau's bisection once more. Guesses are rounded to the step, a power of two,
  // so that searches with like guesses ask about the same values.
  constexpr std::int64_t part_of_guess = 512;
  guess = std::clamp<std::int64_t>(guess, 2, std::max<std::int64_t>(most, 2));
  const auto part = static_cast<std::uint64_t>(std::max<std::int64_t>(guess / part_of_guess, 1));
  const std::int64_t first = guess == 2 ? 2 : static_cast<std::int64_t>(std::bit_floor(part));
  guess -= guess % first;
  if (guess < fails) ask(guess);
  for (std::int64_t step = first; found.value >= guess && fails > most; step *= 2) {
    if (found.value == most) break;
    ask(std::min(found.value + step, most));
  }
  for (std::int64_t step = std::max<std::int64_t>(first / 2, 1);
       found.value == 1 && fails <= guess && fails - step > 1; step *= 2) {
    ask(fails - step);
  }
  while (fails - found.value > 1) ask(found.value + (fails - found.value) / 2);
  found.reached_most = fails > most;
  return found;
}

}  // namespace stowage
