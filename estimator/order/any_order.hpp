// A bound on the memory of any execution order, for runtimes that choose the order of independent
// branches themselves.
#pragma once

#include <optional>

#include "estimator/order/order_problem.hpp"

namespace stowage {

inline constexpr std::size_t most_nodes_in_any_order = 10'000;

/// An upper bound on the peak of every order that keeps the dependences. It counts at each node
/// every item that some order may have live there. Not always reached: two items may each be live
/// at a node, but not both at once. None: there are more than most_nodes_in_any_order nodes, whose
/// bit matrix of dependences would be too large. O(nodes * (nodes + touches) / 64 + nodes * items).
[[nodiscard]] std::optional<Bytes> any_order_peak(const OrderProblem& problem);

}  // namespace stowage
