// Products that a library runs in another way by the number of their rows, which is known at a
// batch only. The rows are those of what the kernel reads first: the product of all its axes but
// the last.
//
//   linear_forward, fused_rows   up to so many rows the kernel reads the packed weight itself: the
//                                restored weight (its second argument) and what it holds are not
//                                made (bitsandbytes, _gemm_4bit_use_custom_cuda)
//   int8_product, float_rows     past so many rows int8 is multiplied as it is, and the node's
//                                temporaries are not made (torch._int_mm wants more than 16)
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// By StorageId: the storage is not made at this batch. Empty: all are.
[[nodiscard]] std::vector<bool> unmade_storages(const StepGraph& graph, std::int64_t batch);

}  // namespace stowage
