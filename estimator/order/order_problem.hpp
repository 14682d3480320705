// OrderProblem: what a step's memory is in any order of its nodes, with everything on one device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// Nodes are numbered as in the step; an order lists them by place.
struct OrderProblem {
  /// Live from the first place at which one of its touches runs to the last, both counted.
  struct Item {
    Bytes bytes;
    std::vector<std::int32_t> touches;  ///< nodes, ascending, each once, never empty
  };
  Bytes always;                ///< there at every node
  std::vector<Bytes> scratch;  ///< by node: live while it runs
  std::vector<Item> items;
  std::vector<std::vector<std::int32_t>> before;  ///< by node: those that must run earlier
};

/// Storages that outlive the step are always there, inputs from their first use on; a node's
/// scratch is its temporaries and the least of its workspaces. Bytes in granules of an arena.
[[nodiscard]] OrderProblem order_problem(const SizedStep& step);

/// Live bytes by place. O(touches + nodes). Precondition: `order` is a permutation of the nodes.
[[nodiscard]] std::vector<Bytes> live_in_order(const OrderProblem& problem,
                                               std::span<const std::int32_t> order);
[[nodiscard]] Bytes peak_of_order(const OrderProblem& problem, std::span<const std::int32_t> order);

}  // namespace stowage
