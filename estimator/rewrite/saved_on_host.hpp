// Saved tensors on the host: rewrites a step of PyTorch's kernels so that storages which autograd
// keeps lie in the host's memory between forward and backward.
//
//   kept    y = conv(x) ............................................... | backward reads y
//   away    y = conv(x), y to the host ... y let go | ... y from the host ... backward reads y
//
// The points are a script's own: a copy begins when a tensor has been saved, memory is let go and
// fetched where autograd saves or asks for some tensor (docs/apply.md). A copy to the host takes no
// memory on the GPU; a copy back is a new storage, "conv1.fetched", of the same size.
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A storage's stay on the host. Its copy there begins after `copied_after`, its memory is let go
/// after `released_after` and taken again before `fetched_before`.
struct SavedStay {
  StorageId storage;
  NodeId copied_after, released_after, fetched_before;
  bool operator==(const SavedStay&) const = default;
};

/// What nodes from `fetched_before` on read and hold is the fetched storage. The graph's list of
/// saved tensors is unchanged. Linear in the nodes, except for sorting.
/// Errors: a stay's points are not in this order; a node between release and fetch touches the
/// storage, or one after the fetch writes it; a storage has two stays.
[[nodiscard]] Result<StepGraph> with_saved_on_host(StepGraph step,
                                                   const std::vector<SavedStay>& stays);

}  // namespace stowage
