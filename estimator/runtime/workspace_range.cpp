#include "estimator/runtime/workspace_range.hpp"

#include <algorithm>

namespace stowage {

namespace {

bool is_small(Bytes rounded) { return rounded <= largest_small_block; }

Bytes largest_for(Bytes rounded, const LargestCached& cached) {
  return is_small(rounded) ? cached.small : cached.large;
}

}  // namespace

void WorkspaceRange::note(Bytes workspace, const LargestCached& cached,
                          const AllocatorSettings& settings) {
  const Bytes rounded = rounded_size(workspace, settings);
  const Bytes largest = largest_for(rounded, cached);
  if (rounded <= largest) {
    const LargestCached before = served_.value_or(cached);
    served_ = {std::min(before.small, cached.small), std::min(before.large, cached.large)};
    return;
  }
  const Bytes above = asked_ ? std::max(asked_->above, largest) : largest;
  asked_ = {is_small(rounded), above, segment_size(rounded, settings)};
}

bool WorkspaceRange::contains(Bytes workspace, const AllocatorSettings& settings) const {
  if (workspace == Bytes()) return !asked_;
  const Bytes rounded = rounded_size(workspace, settings);
  if (served_ && rounded > largest_for(rounded, *served_)) return false;
  return !asked_ || (is_small(rounded) == asked_->small && rounded > asked_->above &&
                     segment_size(rounded, settings) == asked_->segment);
}

}  // namespace stowage
