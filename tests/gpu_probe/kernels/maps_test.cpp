// Padding and resampling: which element takes its value from which, found from both sides.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "gpu_probe/kernels/bodies/padding.hpp"
#include "gpu_probe/kernels/bodies/resampling.hpp"

namespace stowage::test {
namespace {

using body::PaddedAxis;
using body::PaddingMode;
using body::ResampledAxis;
using body::ResamplingMode;

bool same_from_both_sides(const PaddedAxis& axis, PaddingMode mode) {
  for (body::Index at = 0; at < axis.in; ++at) {
    std::vector<body::Index> taking, found;
    for (body::Index to = 0; to < axis.out; ++to) {
      if (axis.source(to, mode) == at) taking.push_back(to);
    }
    for (body::Index to = axis.next(at, -1, mode); to < axis.out; to = axis.next(at, to, mode)) {
      found.push_back(to);
    }
    if (taking != found) return false;
  }
  return true;
}

bool takers_hold_all(const ResampledAxis& axis) {
  for (body::Index to = 0; to < axis.out; ++to) {
    const body::Taps taps = axis.taps(to);
    for (int i = 0; i < taps.count; ++i) {
      if (taps.at[i] < 0 || taps.at[i] >= axis.in) return false;
      const ResampledAxis::Takers takers = axis.takers(taps.at[i]);
      if (to < takers.begin || to >= takers.end || takers.end > axis.out) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("padding's positions are found again from those that they have their values from") {
  constexpr body::Index widest = 9;
  for (body::Index in = 1; in <= 6; ++in) {
    for (body::Index before = -in; before <= widest; ++before) {
      for (body::Index after = -in; after <= widest; ++after) {
        const PaddedAxis axis{in, in + before + after, before, 1};
        if (axis.out < 0) continue;
        const body::Index most = std::max(before, after);
        CHECK(same_from_both_sides(axis, PaddingMode::constant));
        CHECK(same_from_both_sides(axis, PaddingMode::replicate));
        if (most <= in) CHECK(same_from_both_sides(axis, PaddingMode::circular));
        if (most < in) CHECK(same_from_both_sides(axis, PaddingMode::reflect));
      }
    }
  }
}

TEST_CASE("rolling finds its positions again, whatever the shift") {
  for (body::Index in = 1; in <= 6; ++in) {
    for (body::Index shift = -15; shift <= 15; ++shift) {
      CHECK(same_from_both_sides({in, in, shift, 1}, PaddingMode::circular));
    }
  }
}

TEST_CASE("a position's taps are all found from the input's side") {
  constexpr double scales[] = {0, 0.3, 0.5, 1, 1.7, 2, 3.4};
  for (const ResamplingMode mode :
       {ResamplingMode::nearest, ResamplingMode::linear, ResamplingMode::cubic}) {
    for (body::Index in = 1; in <= 11; ++in) {
      for (body::Index out = 1; out <= 24; ++out) {
        for (const double scale : scales) {
          INFO(in, " to ", out, " by ", scale);
          CHECK(takers_hold_all({in, out, mode, false, scale}));
          CHECK(takers_hold_all({in, out, mode, true, scale}));
        }
      }
    }
  }
}

}  // namespace stowage::test
