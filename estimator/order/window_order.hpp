// Reorders a window of an order for the lowest peak within it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimator/order/order_problem.hpp"

namespace stowage {

inline constexpr std::size_t largest_window = 64;

/// By node: the items that it touches.
[[nodiscard]] std::vector<std::vector<std::int32_t>> items_of_nodes(const OrderProblem& problem);

struct WindowOrder {
  std::vector<std::int32_t> nodes;
  Bytes peak;  ///< largest live bytes at the window's places
};

/// Searches the orders of the nodes at `order`'s places [begin, begin + count) that keep the
/// dependences; count is at most largest_window. At each level at most `most_sets` sets of nodes
/// that have run are kept. If no order has a peak below `below`, `nodes` is empty.
[[nodiscard]] WindowOrder order_window(const OrderProblem& problem,
                                       const std::vector<std::vector<std::int32_t>>& items_of,
                                       std::span<const std::int32_t> order, std::size_t begin,
                                       std::size_t count, std::size_t most_sets, Bytes below);

}  // namespace stowage
