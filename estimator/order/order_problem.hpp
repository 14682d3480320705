// OrderProblem: the memory of a step as a function of the order of its nodes, with everything on
// one device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// Nodes are numbered as in the step. An order is a list of nodes; a place is an index into it.
struct OrderProblem {
  /// A storage that is live from the first to the last place of the nodes that touch it, inclusive.
  struct Item {
    Bytes bytes;
    std::vector<std::int32_t> touches;  ///< nodes, ascending, each once, never empty
  };
  Bytes always;                ///< live at every node
  std::vector<Bytes> scratch;  ///< by node: live while it runs
  std::vector<Item> items;
  std::vector<std::vector<std::int32_t>> before;  ///< by node: the nodes that must run earlier
};

/// Storages that outlive the step are always live, and inputs from their first use on. A node's
/// scratch is its temporaries and its smallest workspace. Sizes are rounded up to the arena's
/// alignment.
[[nodiscard]] OrderProblem order_problem(const SizedStep& step);

/// By place: the live bytes. O(touches + nodes). Precondition: `order` is a permutation of the
/// nodes.
[[nodiscard]] std::vector<Bytes> live_in_order(const OrderProblem& problem,
                                               std::span<const std::int32_t> order);
[[nodiscard]] Bytes peak_of_order(const OrderProblem& problem, std::span<const std::int32_t> order);

}  // namespace stowage
