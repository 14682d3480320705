// Partition: what data-parallel training adds to a step on one GPU, and what it takes away.
//
// Counted as DistributedDataParallel and DeepSpeed do it with their defaults:
//   DDP      gradients once more, in the buckets that are reduced (unless gradient_as_bucket_view);
//   ZeRO 1   optimizer state and the temporaries of its step by share; a reduction buffer of up to
//            reduce_bucket_size elements; under fp32 a copy of the share of the parameters, which
//            DeepSpeed always keeps (in mixed precision that copy is the master weights);
//   ZeRO 2   gradients by share too, each whole while it is made;
//   ZeRO 3   parameters by share too, but those of fewer elements than the persistence threshold;
//            gathered ones are kept up to stage3_max_live_parameters elements.
// NCCL's own buffers lie outside the allocator (runtime.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

inline constexpr std::int64_t zero_reduce_bucket_elements = 500'000'000;
inline constexpr std::int64_t zero_max_live_parameters = 1'000'000'000;
inline constexpr std::int64_t zero_persistence_threshold = 100'000;

/// Whether each GPU keeps but a share of the storage, by its StorageId. All false without
/// partition. O(storages + touches).
[[nodiscard]] std::vector<bool> shared_out(const StepGraph& graph);

/// Bytes that a GPU keeps of a storage of `whole` bytes that is shared out: the largest share.
[[nodiscard]] Bytes share_of(Bytes whole, const StepGraph& graph);

/// The buffers that come with the settings' DataParallel, none without.
[[nodiscard]] std::vector<RuntimeBuffer> parallel_buffers(const StepGraph& graph);

}  // namespace stowage
