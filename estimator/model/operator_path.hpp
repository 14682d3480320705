// Paths of operators (Operator::path), which are empty where they are the names.
#pragma once

#include <string>
#include <string_view>

#include "estimator/model/model_graph.hpp"

namespace stowage {

[[nodiscard]] inline std::string_view path_of(const Operator& op) {
  return op.path.empty() ? op.name : op.path;
}

/// The path of an operator that is called after `whole`, as "fc1.lora_A" is after "fc1"; empty: of
/// another name, or where `whole` has none.
[[nodiscard]] inline std::string path_of_part(const Operator& whole, std::string_view name) {
  const bool is_part =
      name.starts_with(whole.name) && name.substr(whole.name.size()).starts_with('.');
  if (whole.path.empty() || !is_part) return {};
  return whole.path + std::string(name.substr(whole.name.size()));
}

}  // namespace stowage
