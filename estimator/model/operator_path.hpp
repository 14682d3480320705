// Paths of operators (Operator::path, which is empty if it equals the name).
#pragma once

#include <string>
#include <string_view>

#include "estimator/model/model_graph.hpp"

namespace stowage {

[[nodiscard]] inline std::string_view path_of(const Operator& op) {
  return op.path.empty() ? op.name : op.path;
}

/// The path of an operator that is named after `whole`, as "fc1.lora_A" after "fc1". Empty: it is
/// not named so, or `whole` has no path of its own.
[[nodiscard]] inline std::string path_of_part(const Operator& whole, std::string_view name) {
  const bool is_part =
      name.starts_with(whole.name) && name.substr(whole.name.size()).starts_with('.');
  if (whole.path.empty() || !is_part) return {};
  return whole.path + std::string(name.substr(whole.name.size()));
}

}  // namespace stowage
