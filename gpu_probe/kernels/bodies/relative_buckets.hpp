// T5's buckets of relative positions (Raffel et al., 2020; transformers'
// T5Attention._relative_position_bucket).
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

/// y is [queries, keys]. Half of the buckets hold one distance each; the other half grow with the
/// logarithm of the distance, up to max_distance. The index is an element.
struct RelativeBuckets {
  Integers y;
  Index keys, buckets, max_distance;
  bool bidirectional;

  STOWAGE_BODY void operator()(Index i) const {
    const Index query = quotient(i, keys), key = i - query * keys;
    y.set(i, bucket(key - query));
  }

  [[nodiscard]] STOWAGE_BODY Index bucket(Index distance) const {
    Index first = 0, count = buckets;
    if (bidirectional) {
      count /= 2;
      if (distance > 0) first = count;
      if (distance < 0) distance = -distance;
    } else {
      distance = most(-distance, Index(0));
    }
    const Index exact = count / 2;
    if (distance < exact) return first + distance;
    const double ratio = static_cast<double>(distance) / static_cast<double>(exact);
    const double range = static_cast<double>(max_distance) / static_cast<double>(exact);
    const auto further = static_cast<Index>(body::log(ratio) / body::log(range) *
                                            static_cast<double>(count - exact));
    return first + least(exact + further, count - 1);
  }
};

}  // namespace stowage::body
