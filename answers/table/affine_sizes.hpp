// The steps of many values out of those of a few.
//
//   SizedAt that reads and lowers the model anew -> affine_sizes -> SizedAt that seldom does
//
// Between two values a storage's bytes are often a + b value + c ceil(value / block): a cache
// grows by the token, or by whole blocks of tokens. A stretch of values is believed to be so where
// the steps at both ends and at two values within have the same kernels, storages and touches, and
// one (a, b, c) gives the bytes of all four, for every storage. A single kink within a stretch
// (a window that is full, a chunk that is longer than the context) puts every value between the
// ends off the chord, so that the check finds it; the stretch is then parted. Short stretches,
// steps with convolutions or shared out over GPUs, and values that a stretch does not hold are
// sized by the given SizedAt.
#pragma once

#include "answers/sizing/value_search.hpp"

namespace stowage {

/// `block`: at least 1. `kinks`: values, at least 1, where the bytes are known to bend. The steps
/// of a value that was not itself sized have storage_bytes and batch as size_step's, the graph of
/// another value, and no flops and bytes_moved. Values whose steps are equal share one SizedSteps.
/// Not for concurrent use.
[[nodiscard]] SizedAt affine_sizes(SizedAt exact, std::int64_t block,
                                   std::vector<std::int64_t> kinks);

}  // namespace stowage
