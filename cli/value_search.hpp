// The search of batch --of, whatever its values are of: users, a context's tokens, a sequence's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "cli/request.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/card/card.hpp"
#include "estimator/check/check.hpp"
#include "estimator/check/largest_value.hpp"

namespace stowage {

/// What a value's run comes to; of serving, the pass that takes more.
struct ValueRun {
  bool fits = false, calm = false;  ///< calm: the cache is never given back, and steps settle
  Bytes device_bytes, headroom, available;
  Bytes usual_margin;
};

[[nodiscard]] ValueRun run_of(const CheckReport& report, const Card& card,
                              const CheckSettings& settings);
/// Of two passes of one process: what the larger takes, and what holds for both.
[[nodiscard]] ValueRun larger_of(const ValueRun& a, const ValueRun& b);

using RunAt = std::function<Result<ValueRun>(std::int64_t)>;

/// The runs of a search, each value once.
class ValueTrials {
 public:
  ValueTrials(RunAt run, std::optional<Bytes> margin) : run_(std::move(run)), margin_(margin) {}

  Result<ValueRun> at(std::int64_t value) {
    const auto known = runs_.find(value);
    if (known != runs_.end()) return known->second;
    Result<ValueRun> run = run_(value);
    if (run) runs_.emplace(value, *run);
    return run;
  }
  Result<bool> fits(std::int64_t value) {
    return at(value).map([](const ValueRun& run) { return run.fits; });
  }
  Result<bool> keeps_margin(std::int64_t value) {
    return at(value).map([&](const ValueRun& run) {
      return run.calm && run.headroom >= margin_.value_or(run.usual_margin);
    });
  }
  /// About the largest value that leaves the margin (or fits, without one): on the line through the
  /// runs at `value` and at its half, which are known. Precondition: value >= 1.
  [[nodiscard]] std::int64_t estimate(std::int64_t value, bool with_margin);

 private:
  RunAt run_;
  std::optional<Bytes> margin_;
  std::map<std::int64_t, ValueRun> runs_;
};

struct FoundValue {
  LargestValue largest, recommended;
  std::optional<ValueRun> at_one, at_largest, at_recommended;
};

/// The largest value that fits and the largest that leaves the margin, with their runs. Errors:
/// that of the value 1.
[[nodiscard]] Result<FoundValue> search_largest(ValueTrials& trials);

/// What is looked for, in words.
struct Sought {
  std::string_view option;  ///< "context-length"
  std::string_view noun;    ///< "context length"
};

[[nodiscard]] Sought sought(LargestOf of);

}  // namespace stowage
