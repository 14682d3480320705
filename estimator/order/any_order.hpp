// The worst order: what a runtime may take that runs branches as it likes.
#pragma once

#include <optional>

#include "estimator/order/order_problem.hpp"

namespace stowage {

inline constexpr std::size_t most_nodes_in_any_order = 10'000;

/// An upper bound on the peak of every order that keeps the dependences: at each node all that is
/// neither over before it nor begun after it in every order. Not always reached: two items may each
/// be live beside a node, but not both at once. None: more than most_nodes_in_any_order nodes, of
/// which the bits "comes before" would take too much. O(nodes * (nodes + touches) / 64 +
/// nodes * items).
[[nodiscard]] std::optional<Bytes> any_order_peak(const OrderProblem& problem);

}  // namespace stowage
