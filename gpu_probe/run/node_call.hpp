// Makes the arguments of a kernel call from a step graph's node: shapes at the batch, addresses as
// the caller gives them.
#pragma once

#include <functional>
#include <vector>

#include "estimator/step/step_graph.hpp"
#include "gpu_probe/backend/backend.hpp"

namespace stowage {

struct NodeArguments {
  std::vector<TensorArgument> reads, writes;
};

/// Precondition: every argument is contiguous and has offset 0, as in steps of the `stowage` kernel
/// set.
[[nodiscard]] NodeArguments arguments_of(const KernelNode& node, std::int64_t batch,
                                         const std::function<std::byte*(StorageId)>& address);

/// The node's attributes in step number `number` of several, counted from 1: optimizers are told
/// the number, and random kernels draw other values in each step. In the first step they are the
/// node's own.
[[nodiscard]] Attributes attributes_in_step(const KernelNode& node, std::int64_t number);

/// The storages that a node reads, writes, or either: each once, ascending.
[[nodiscard]] std::vector<StorageId> storages_read(const KernelNode& node);
[[nodiscard]] std::vector<StorageId> storages_written(const KernelNode& node);

}  // namespace stowage
