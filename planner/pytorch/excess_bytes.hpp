// What a step's tensors have above a card's memory: a bound on what has to come back from the host.
#pragma once

#include "estimator/base/bytes.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// At the step's peak at least so many bytes of its tensors (without workspaces, in units of 512
/// bytes as PyTorch's allocator has them) find no room within `available`. Where nothing but saved
/// tensors and parameters may leave, these bytes lie on the host then, and each of them is read by
/// a kernel of this step or of the next: so that in a step at least as many are copied to the GPU,
/// whichever tensors leave and however often. O(entries).
[[nodiscard]] Bytes excess_bytes(const SizedStep& step, Bytes available);

}  // namespace stowage
