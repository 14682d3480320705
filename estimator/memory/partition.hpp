// Partition: what DDP and ZeRO add to a step on one GPU, and what they take away. (FSDP's steps are
// rewritten: rewrite/fully_sharded.hpp.)
//
// Counted as DistributedDataParallel and DeepSpeed (commit edaa722) do it with their defaults:
//   DDP      gradients once more, in the buckets that are reduced (unless gradient_as_bucket_view);
//   ZeRO 1   optimizer state and the temporaries of its step by share; in backward a reduction
//            buffer of reduce_bucket_size elements, however few the gradients are (setup_buckets in
//            runtime/zero/stage_1_and_2.py); in the update the share's gradients in one flat fp32
//            tensor (step); under fp32 a copy of the share of the parameters, which is always kept
//            (in mixed precision that copy is the master weights);
//   ZeRO 2   gradients by share too (copy_grads_in_partition), each whole while it is made;
//   ZeRO 3   parameters by share too, but those of fewer elements than the persistence threshold;
//            the gradients' share and the reduction buffer are kept for good, the latter is copied
//            once more where it is reduced (runtime/comm/coalesced_collectives.py); gathered
//            parameters are kept up to stage3_max_live_parameters elements until the update, which
//            goes by sub-groups of sub_group_size elements of a share (runtime/zero/stage3.py).
// The sizes of these buffers do not depend on the number of GPUs, so that they are counted for what
// a single one offloads too (setup_buckets and temp_grad_buffer_for_gpu_offload of DeepSpeed 0.19.8
// ask for no number). Offloaded to the CPU: the optimizer with master weights and fp32 gradients,
// under ZeRO 3 the parameters' share. NCCL's own buffers lie outside the allocator
// (runtime/process_overhead.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

// runtime/zero/config.py
inline constexpr std::int64_t zero_reduce_bucket_elements = 500'000'000;
inline constexpr std::int64_t zero_max_live_parameters = 1'000'000'000;
inline constexpr std::int64_t zero_persistence_threshold = 100'000;
inline constexpr std::int64_t zero_sub_group_elements = 1'000'000'000;

/// By StorageId: gradients of parameters, whatever class they have (a sum of several is one that
/// flows back).
[[nodiscard]] std::vector<bool> parameter_gradients(const StepGraph& graph);

/// Whether each GPU keeps but a share of the storage, by its StorageId. All false without
/// partition. O(storages + touches).
[[nodiscard]] std::vector<bool> shared_out(const StepGraph& graph);

/// Bytes that a GPU keeps of a storage of `whole` bytes that is shared out: the largest share, and
/// of what is offloaded nothing.
[[nodiscard]] Bytes kept_of(const Storage& storage, Bytes whole, const StepGraph& graph);

/// The buffers that come with the settings' DataParallel, none without.
[[nodiscard]] std::vector<RuntimeBuffer> parallel_buffers(const StepGraph& graph);

/// What one GPU's process keeps in the CPU's memory of what is offloaded. PyTorch's pinned
/// allocator gives powers of two (ATen/core/CachingHostAllocator.h).
[[nodiscard]] std::vector<HostBuffer> host_buffers(const StepGraph& graph);

}  // namespace stowage
