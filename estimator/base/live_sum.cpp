#include "estimator/base/live_sum.hpp"

#include <cassert>
#include <utility>

namespace stowage {

LiveSum::LiveSum(std::int32_t steps) : change_(static_cast<std::size_t>(steps) + 1) {}

void LiveSum::add(StepRange range, Bytes bytes) {
  if (range.empty()) return;
  assert(0 <= range.begin && static_cast<std::size_t>(range.end) < change_.size());
  change_[static_cast<std::size_t>(range.begin)] += bytes;
  change_[static_cast<std::size_t>(range.end)] -= bytes;
}

// An entry lies between what is live before its step, negated, and what is live at it: it leaves 64
// bits only where a live sum does.
std::vector<Bytes> LiveSum::by_step() && {
  change_.pop_back();
  Bytes sum;
  for (Bytes& entry : change_) entry = sum += entry;
  return std::move(change_);
}

Peak peak(std::span<const Bytes> live) {
  Peak result;
  for (std::size_t step = 0; step < live.size(); ++step) {
    if (live[step] > result.bytes) result = {live[step], static_cast<std::int32_t>(step)};
  }
  return result;
}

}  // namespace stowage
