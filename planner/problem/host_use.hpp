// HostUse: what a placement takes of the host's memory, by step.
//
// A version of an item lies on the host from when it is made to its last need there. It is made by
// a write on the CPU, or by a download after a kernel on the GPU has written it; a version from
// before the step is there when the step starts. A need is a read on the CPU or a fetch. An item
// that is never written and lasts beyond the step lies on the host all the time once anything needs
// it there. An item that a copy reads or writes is in pinned memory, all of it. The other items,
// and the temporaries of operations on the CPU, are in pageable memory.
//
// Copies take no time here: a download ends where it begins, and an upload ends when its reader
// begins. So the sums are close to what the arenas on the host hold in the end, sometimes above it
// and sometimes below.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/step_range.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {

/// What may lie on the host at every step; `none`: no limit.
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

/// The steps at which an item lies on the host. No step is in two ranges.
struct HostStay {
  std::vector<StepRange> ranges;
  bool crosses = false;  ///< a copy to the host or from it moves the item

  /// A range that begins where the last one ends extends it.
  void add(StepRange range) {
    if (range.empty()) return;
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
};

/// The steps at which a version lies on the host for this reader or a later one, but for no reader
/// before it.
struct HostSpan {
  StepRange within;
  StepRange wrapped;  ///< in the next step, where the need goes round the step's end
};
/// `reader`: an index into the version's readers.
[[nodiscard]] HostSpan host_span(const Item& item, const Version& version, std::size_t reader,
                                 std::int32_t steps);
/// Whether one need keeps a version on the host for the whole step.
[[nodiscard]] bool lasts_on_host(const Item& item, const Version& version);

/// When an item lies on the host. `on_cpu(touch)`: whether the touch's operation runs there.
/// `fetched(touch)`: whether it is a read on the GPU that needs an upload.
template <typename OnCpu, typename Fetched>
HostStay host_stay(const Item& item, const std::vector<Version>& versions, std::int32_t steps,
                   const OnCpu& on_cpu, const Fetched& fetched) {
  HostStay stay;
  for (const Version& version : versions) {
    const bool made = version.producer >= 0;
    const bool made_on_cpu = made && on_cpu(version.producer);
    if (made_on_cpu) {
      const Touch& touch = item.touches[static_cast<std::size_t>(version.producer)];
      // A version that the write also reads is there at that step too and has the same place.
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
