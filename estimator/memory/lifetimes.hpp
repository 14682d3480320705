// Lifetimes: from when to when each storage takes memory, and the peak of their sum.
//
// The functions here know storages and steps alone, so that the very code behind `check` can be fed
// a trace recorded elsewhere (tests/estimator/memory/dtr_trace_test.cpp does).
// All intervals are half-open in steps: a storage of [2, 5) is live during steps 2, 3 and 4.
#pragma once

#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/live_sum.hpp"
#include "estimator/base/step_range.hpp"

namespace stowage {

struct SizedStep;

/// The first and the last of the steps at which a storage must be there, which decide its lifetime.
/// A large network has a million storages, so that the steps between are not kept.
class Touches {
 public:
  constexpr Touches() = default;
  constexpr Touches(std::initializer_list<std::int32_t> ascending) {
    for (const std::int32_t step : ascending) push_back(step);
  }

  /// Precondition: not before the last.
  constexpr void push_back(std::int32_t step) {
    assert(step >= 0 && step >= last_);
    if (empty()) first_ = step;
    last_ = step;
  }
  [[nodiscard]] constexpr bool empty() const { return last_ < 0; }
  [[nodiscard]] constexpr std::int32_t front() const { return first_; }  ///< not empty
  [[nodiscard]] constexpr std::int32_t back() const { return last_; }    ///< not empty

 private:
  std::int32_t first_ = -1, last_ = -1;
};

/// What a storage asks of memory: its size and the steps at which it must be there.
struct StorageUse {
  Bytes bytes;
  Touches touches;                  ///< empty: never live unless `whole_step`
  bool whole_step = false;          ///< live from step 0 to the end, touched or not
  bool from_start = false;          ///< live from step 0 to its last touch (an input)
  bool to_end = false;              ///< after its last touch live to the end
  std::int32_t previous_until = 0;  ///< the last step's copy is live in [0, previous_until)
};

struct Lifetime {
  std::int32_t use = 0;  ///< index into the uses
  StepRange steps;       ///< at which it is live
  Bytes bytes;
};

/// The lifetimes of all uses, ordered by (begin, use). A use can have two (previous_until).
/// O(uses + steps).
[[nodiscard]] std::vector<Lifetime> lifetimes(std::span<const StorageUse> uses, std::int32_t steps);

/// Live bytes during each step. O(lifetimes + steps). Throws ArithmeticOverflow.
[[nodiscard]] std::vector<Bytes> live_bytes(std::span<const Lifetime> lifetimes,
                                            std::int32_t steps);
/// As above, of the uses' lifetimes; the uses need no order. O(uses + steps).
[[nodiscard]] std::vector<Bytes> live_bytes(std::span<const StorageUse> uses, std::int32_t steps);

/// Adds one use's lifetimes: for callers that visit uses one at a time.
void add_use(LiveSum& sum, const StorageUse& use);

/// How many of the use's lifetimes hold `step`: two while the last step's copy awaits the new one.
[[nodiscard]] int copies_at(const StorageUse& use, std::int32_t step);

}  // namespace stowage
