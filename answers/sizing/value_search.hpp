// The largest value of a quantity (users, context length, sequence length) on a card, as a search.
//
//   SizedAt (the steps at a value) + card -> run_of_steps -> ValueRun
//   ValueRun at some values               -> search_values -> FoundValues
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "estimator/check/check.hpp"
#include "estimator/check/largest_value.hpp"

namespace stowage {

/// The steps of a value, all of which must fit: one, or a serving model's prefill and decode.
struct SizedSteps {
  std::vector<SizedStep> steps;
};
using SizedAt = std::function<Result<std::shared_ptr<const SizedSteps>>(std::int64_t value)>;

/// What a value's run comes to; of several steps, the one that takes more.
struct ValueRun {
  bool fits = false, calm = false;  ///< calm: the cache is never given back, and steps settle
  Bytes device_bytes, headroom, available;
  Bytes usual_margin;
};
[[nodiscard]] ValueRun run_of_step(const SizedStep& step, const Card& card,
                                   const CheckSettings& settings);
/// Of at least one.
[[nodiscard]] ValueRun larger_run(const std::vector<ValueRun>& runs);
[[nodiscard]] ValueRun run_of_steps(const SizedSteps& sized, const Card& card,
                                    const CheckSettings& settings);

/// What values needed on cards that run the same steps: from it the next card's search begins near
/// its end.
class NeedsByValue {
 public:
  void add(std::int64_t value, Bytes needed) { needs_[value] = needed; }
  /// Where a line through the two nearest values reaches `room`; 2: too little is known.
  [[nodiscard]] std::int64_t value_at(Bytes room) const;

 private:
  std::map<std::int64_t, Bytes> needs_;
};

struct FoundValues {
  LargestValue largest, recommended;
  std::optional<ValueRun> at_one, at_largest, at_recommended;
};
using RunAt = std::function<Result<ValueRun>(std::int64_t)>;

/// `margin`: that the recommended value leaves; none: each run's usual one. Each value is run once.
/// `needs` is read and added to. Errors: of the run at 1.
[[nodiscard]] Result<FoundValues> search_values(const RunAt& run, std::optional<Bytes> margin,
                                                NeedsByValue& needs);

}  // namespace stowage
