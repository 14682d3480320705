// HostUse: what a placement takes of the host's memory, by step.
//
// A version of an item lies on the host from when it is made (written on the CPU, or downloaded
// once a kernel on the GPU has written it; at the step's start, where it was there before) to its
// last need: a read on the CPU, or a fetch. What is never written and lasts beyond the step lies
// there all the time once anything needs it there. An item that a copy crosses to or from is in
// pinned memory, all of it; the rest, and the temporaries of operations on the CPU, is pageable.
//
// Copies have no time here: a download takes none, and an upload ends when its reader begins. So
// this is close to what the arenas on the host hold in the end, neither above nor below it always.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/step_range.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {

/// At every step; none: no limit.
struct HostLimits {
  static constexpr Bytes none = Bytes(std::numeric_limits<std::int64_t>::max());
  Bytes pinned = none;
  Bytes all = none;  ///< pinned and pageable
  [[nodiscard]] bool any() const { return pinned != none || all != none; }
  bool operator==(const HostLimits&) const = default;
};

struct HostUse {
  std::vector<Bytes> pinned, all;  ///< by step
};
/// Precondition: evaluate() calls the placement consistent. O(touches + steps).
[[nodiscard]] HostUse host_use(const ResidencyProblem& problem, const Placement& placement);

/// The steps at which an item lies on the host; none of them is in two ranges.
struct HostStay {
  std::vector<StepRange> ranges;
  bool crosses = false;  ///< a copy leads there or from there

  /// Ranges that meet are joined.
  void add(StepRange range) {
    if (range.empty()) return;
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
};

/// One need of a version after the other: the steps at which the version lies on the host for this
/// reader or a later one, and for none before.
struct HostSpan {
  StepRange within;
  StepRange wrapped;  ///< of what goes round the step's end, those in the next step
};
/// `reader` counts the version's readers.
[[nodiscard]] HostSpan host_span(const Item& item, const Version& version, std::size_t reader,
                                 std::int32_t steps);
/// Whether one need keeps a version on the host for the whole step.
[[nodiscard]] bool lasts_on_host(const Item& item, const Version& version);

/// `on_cpu(touch)`: its operation runs there; `fetched(touch)`: a read on the GPU that uploads.
template <typename OnCpu, typename Fetched>
HostStay host_stay(const Item& item, const std::vector<Version>& versions, std::int32_t steps,
                   const OnCpu& on_cpu, const Fetched& fetched) {
  HostStay stay;
  for (const Version& version : versions) {
    const bool made = version.producer >= 0;
    const bool made_on_cpu = made && on_cpu(version.producer);
    if (made_on_cpu) {
      const Touch& touch = item.touches[static_cast<std::size_t>(version.producer)];
      // What it reads is there at that step, too, and shares the place.
      if (!touch.reads) stay.add(StepRange::single(touch.step));
    }
    std::size_t needs = 0;  // readers up to the last that needs it
    for (std::size_t i = 0; i < version.readers.size(); ++i) {
      const bool fetch = fetched(version.readers[i]);
      if (fetch || on_cpu(version.readers[i])) needs = i + 1;
      stay.crosses = stay.crosses || fetch;
    }
    if (needs == 0) continue;
    stay.crosses = stay.crosses || (made && !made_on_cpu);
    if (lasts_on_host(item, version)) {
      stay.ranges = {{0, steps}};
      continue;
    }
    for (std::size_t i = 0; i < needs; ++i) {
      const HostSpan span = host_span(item, version, i, steps);
      stay.add(span.within);
      stay.add(span.wrapped);
    }
  }
  return stay;
}

}  // namespace stowage
