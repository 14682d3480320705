// Rewrites the step of a whole replica into the step of one GPU among several that train with
// PyTorch's fully_shard (FSDP2).
//
//   forward    gather root | gather block 0, a, b, reshard | gather block 1, c, reshard | loss
//   backward   gather block 1, [gather block 0] c, reshard, reduce-scatter block 1 | b, a, ...
//
// The parameters' storages become this GPU's shards. Kernels read gathered copies, storages named
// "NAME.unsharded": they exist from before the first kernel of the group in forward until the group
// has run (reshard_after_forward), and again in backward. The rules are those of PyTorch 2.15
// (torch/distributed/fsdp/_fully_shard: _fsdp_collectives.py, _fsdp_param_group.py,
// _fsdp_state.py):
//
// - a gather casts the shards (foreach_all_gather), collects all shards of the group in one buffer
//   and copies them from there to the parameters (split_with_sizes_copy). In forward the buffer
//   lives until that of the next group exists, since the copy and the next gather overlap; in
//   backward it is released at once, and the gather of the previous group starts
//   (_backward_prefetch);
// - the group's gradients are copied into one buffer in the format of the reduction (chunk_cat),
//   which lives until the next group's gradients are complete; the reduced shards are one storage,
//   cast to the parameters' format;
// - the root's group is gathered from the start of the step to the end of backward. A group whose
//   input needs no gradient is also reduced at the end, after the root's;
// - the optimizer sees the shards: its state and its temporaries are theirs;
// - gathers and reductions allocate on their own streams: the attribute `stream` of a node is the
//   stream of its results and temporaries (0 or absent: the kernels' stream).
//
// With a single GPU FSDP communicates nothing, but still copies parameters and gradients, and so
// does this rewrite. With CPUOffloadPolicy shards, gradients and state are host_buffers, the update
// runs on the CPU, and the shards are copied to the GPU before each gather. Not modelled: the lists
// of pointers that some PyTorch kernels keep (split_with_sizes_copy, chunk_cat).
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Values of the attribute `stream` of FSDP's nodes.
inline constexpr std::int64_t gather_stream = 1;
inline constexpr std::int64_t reduce_stream = 2;

/// `step`: one micro-batch with PyTorch's kernels, lowered from `model`, after with_checkpoints().
/// A step that does not train, or without FSDP in its settings, is returned unchanged. Linear in
/// the step, except for sorting.
/// Errors: those of shard_groups(); kernels other than PyTorch's; `zero_grad: to_zero`; an
/// optimizer that needs whole parameters; blocks whose operators are interleaved.
[[nodiscard]] Result<StepGraph> with_full_sharding(StepGraph step, const ModelGraph& model);

}  // namespace stowage
