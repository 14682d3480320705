// StepProfile: a number for each step, with additions to a range and the largest value of a range
// in O(log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimator/base/step_range.hpp"

namespace stowage {

class StepProfile {
 public:
  explicit StepProfile(std::span<const std::int64_t> values);

  /// Adds to every step of the range, which may be empty.
  void add(StepRange range, std::int64_t amount);
  /// The largest value of a range; of an empty range the smallest 64-bit number.
  [[nodiscard]] std::int64_t largest(StepRange range) const;
  [[nodiscard]] std::int64_t largest() const { return nodes_.empty() ? 0 : nodes_[1].largest; }
  /// The first step that has the largest value.
  [[nodiscard]] std::int32_t largest_at() const;
  [[nodiscard]] std::int64_t at(std::int32_t step) const {
    return largest(StepRange::single(step));
  }

 private:
  struct Node {
    std::int64_t largest = 0;  ///< of the subtree, `added` included
    std::int64_t added = 0;    ///< to the whole subtree
  };
  void raise(std::size_t node, std::int64_t amount) {
    nodes_[node].largest += amount;
    nodes_[node].added += amount;
  }
  void recount(std::size_t node);
  /// Recounts from a node that has changed up to the root, or until nothing changes any more.
  void recount_above(std::size_t node);

  // A leaf stands for a step. One more leaf at either end stands for no step, so that a range of
  // steps lies between two leaves.
  std::size_t width_ = 4;    ///< leaves, a power of two
  std::vector<Node> nodes_;  ///< a heap: node 1 is the root
};

}  // namespace stowage
