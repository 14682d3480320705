#include "planner/recompute/segments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stowage {

namespace {

/// By group: the last group that reads what it makes, itself where none does.
std::vector<std::size_t> last_readers(const RecomputeModel& model) {
  std::vector<std::size_t> last(model.groups().size());
  for (std::size_t g = 0; g < last.size(); ++g) {
    last[g] = g;
    for (const std::int32_t input : model.inputs(g)) {
      last[static_cast<std::size_t>(input)] = g;
    }
  }
  return last;
}

/// By group b: bytes made by groups before b that b or a later one reads.
std::vector<std::int64_t> crossing_bytes(const RecomputeModel& model, const SizedStep& step,
                                         const std::vector<std::size_t>& last) {
  std::vector<std::int64_t> crossing(model.groups().size() + 1);
  for (std::size_t g = 0; g < last.size(); ++g) {
    std::int64_t bytes = 0;
    for (const StorageId made : model.groups()[g].makes) bytes += step.bytes(made).count();
    for (std::size_t b = g + 1; b <= last[g]; ++b) crossing[b] += bytes;
  }
  return crossing;
}

}  // namespace

std::size_t default_segment_count(const RecomputeModel& model) {
  const double groups = static_cast<double>(model.groups().size());
  return static_cast<std::size_t>(std::max(1L, std::lround(std::sqrt(groups))));
}

RecomputeChoice segment_choice(const RecomputeModel& model, const SizedStep& step,
                               std::size_t segments) {
  const std::size_t count = model.groups().size();
  RecomputeChoice choice(model.decisions(), false);
  if (segments < 2 || count < segments) return choice;
  const std::vector<std::size_t> last = last_readers(model);
  const std::vector<std::int64_t> crossing = crossing_bytes(model, step, last);
  const std::size_t reach = count / segments / 4;
  std::vector<std::size_t> boundaries;
  for (std::size_t s = 1; s < segments; ++s) {
    const std::size_t even = s * count / segments;
    std::size_t best = even;
    for (std::size_t b = even - std::min(even - 1, reach); b <= even + reach && b < count; ++b) {
      if (crossing[b] < crossing[best]) best = b;
    }
    boundaries.push_back(best);
  }
  for (std::size_t g = 0; g < boundaries.back(); ++g) {
    choice[g] =
        std::ranges::none_of(boundaries, [&](std::size_t b) { return g < b && b <= last[g]; });
  }
  return choice;
}

}  // namespace stowage
