// Arguments that a kernel reads by rows of their first axis, at most one for each row of its
// result: an embedding's table, the weights of routed experts.
#pragma once

#include <cstddef>
#include <string_view>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A node's attribute, an integer: the index of the first such argument. An embedding needs none.
inline constexpr std::string_view gathers_attribute = "gathers";

/// The index of the first such argument, from which on all are; the number of arguments: none is.
[[nodiscard]] std::size_t first_gathered(const KernelNode& node);

}  // namespace stowage
