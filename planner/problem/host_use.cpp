#include "planner/problem/host_use.hpp"

#include "estimator/base/live_sum.hpp"

namespace stowage {

bool lasts_on_host(const Item& item, const Version& version) {
  return item.wraps && version.producer < 0;
}

HostSpan host_span(const Item& item, const Version& version, std::size_t reader,
                   std::int32_t steps) {
  if (lasts_on_host(item, version)) return {{0, reader == 0 ? steps : 0}, {}};
  const auto step_of = [&](std::int32_t touch) {
    return item.touches[static_cast<std::size_t>(touch)].step;
  };
  const std::int32_t before = reader == 0 ? version.producer : version.readers[reader - 1];
  const std::int32_t here = version.readers[reader];
  const std::int32_t begin = before < 0 ? 0 : step_of(before) + 1;
  if (before < here) return {{begin, step_of(here) + 1}, {}};
  return {{begin, steps}, {0, step_of(here) + 1}};
}

HostUse host_use(const ResidencyProblem& problem, const Placement& placement) {
  const auto steps = static_cast<std::int32_t>(problem.operations.size());
  LiveSum pinned(steps), all(steps);
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Item& item = problem.items[i];
    const auto on_cpu = [&](std::int32_t touch) {
      const auto step =
          static_cast<std::size_t>(item.touches[static_cast<std::size_t>(touch)].step);
      return placement.device[step] == Device::cpu;
    };
    const auto fetched = [&](std::int32_t touch) {
      const std::int32_t gap = gap_before(item, touch);
      return placement.on_gpu[i][static_cast<std::size_t>(touch)] &&
             (gap < 0 || !placement.resident[i][static_cast<std::size_t>(gap)]);
    };
    const HostStay stay = host_stay(item, versions_of(item), steps, on_cpu, fetched);
    for (const StepRange& range : stay.ranges) {
      all.add(range, item.bytes);
      if (stay.crosses) pinned.add(range, item.bytes);
    }
  }
  HostUse use{std::move(pinned).by_step(), std::move(all).by_step()};
  for (std::size_t t = 0; t < problem.operations.size(); ++t) {
    if (placement.device[t] == Device::cpu) use.all[t] += problem.operations[t].temporaries;
  }
  return use;
}

}  // namespace stowage
