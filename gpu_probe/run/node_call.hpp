// From a step graph's node to a kernel call: shapes at the batch, addresses from whoever knows
// them.
#pragma once

#include <functional>
#include <vector>

#include "estimator/step/step_graph.hpp"
#include "gpu_probe/backend/backend.hpp"

namespace stowage {

struct NodeArguments {
  std::vector<TensorArgument> reads, writes;
};

/// Precondition: every argument is contiguous with offset 0, as the `stowage` set's are.
[[nodiscard]] NodeArguments arguments_of(const KernelNode& node, std::int64_t batch,
                                         const std::function<std::byte*(StorageId)>& address);

/// The node's attributes in the n-th of several steps, counted from 1: optimizers are told which it
/// is, random kernels draw other numbers in each. In the first they are the node's own.
[[nodiscard]] Attributes attributes_in_step(const KernelNode& node, std::int64_t number);

/// The storages that a node reads, writes, or either; each once, ascending.
[[nodiscard]] std::vector<StorageId> storages_read(const KernelNode& node);
[[nodiscard]] std::vector<StorageId> storages_written(const KernelNode& node);

}  // namespace stowage
